// Loaded into configurable-http-proxy's process before it starts (node --import), for what the
// proxy has no options for. At its public port, where it has a certificate:
// - who says http:// to it is sent to https://, and each answer says that it is https only (HSTS);
// - a renewed certificate is taken up without a restart, so that no open page is cut off.
// Towards sessions, with JupyterHub's internal_ssl: a session must have the certificate of the user
// whose pages are asked for. Node would look for the name that the browser asked for.

import { createHash } from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import https from "node:https";

const TLS_RECORD = 22; // RFC 8446, 5.1: how a client that speaks TLS begins
const FIRST_BYTE_MS = 30_000;
const PLAIN_MS = 10_000;
const RENEWAL_MS = 5_000;
const HOST = /^[A-Za-z0-9.:[\]-]{1,255}$/;
const SESSION = /^\/user\/([^/?]+)/;

const given = (option) =>
  process.argv.find((word) => word.startsWith(`--${option}=`))?.slice(option.length + 3);

const files = { key: given("ssl-key"), cert: given("ssl-cert") };
const hsts = process.env.PORTAL_HSTS_SECONDS;
const hub = given("default-target") && new URL(given("default-target"));

function read() {
  return { key: fs.readFileSync(files.key), cert: fs.readFileSync(files.cert) };
}

function redirect(request, response) {
  const { host } = request.headers;
  const isFollowed = ["GET", "HEAD"].includes(request.method) && HOST.test(host ?? "");
  response.setHeader("Connection", "close");
  if (isFollowed) response.setHeader("Location", `https://${host}${request.url}`);
  response.writeHead(isFollowed ? 307 : 400, { "Content-Type": "text/plain" });
  response.end("This port speaks HTTPS: the address begins with https://\n");
}

function answerPlainHttp(server) {
  const plain = http.createServer(redirect);
  const encrypted = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket) => {
    // A connection that breaks before it has an owner must not end the proxy.
    socket.on("error", () => socket.destroy());
    socket.setTimeout(FIRST_BYTE_MS, () => socket.destroy());
    socket.once("readable", () => {
      const first = socket.read(1);
      if (first === null) return socket.destroy();
      socket.setTimeout(0);
      socket.removeAllListeners("timeout");
      socket.unshift(first);
      if (first[0] === TLS_RECORD) return encrypted.forEach((own) => own.call(server, socket));
      const deadline = setTimeout(() => socket.destroy(), PLAIN_MS);
      socket.once("close", () => clearTimeout(deadline));
      plain.emit("connection", socket);
    });
  });
}

function followRenewals(server, options) {
  let used = read();
  let refused = "";
  const timer = setInterval(() => {
    try {
      const found = read();
      if (found.key.equals(used.key) && found.cert.equals(used.cert)) return;
      server.setSecureContext({ ...options, ...found });
      used = found;
      refused = "";
      console.warn(`The renewed certificate ${files.cert} is used`);
    } catch (error) {
      // Half of a pair, perhaps: the other half comes in a moment.
      if (refused !== error.message)
        console.error(`The certificate ${files.cert} cannot be used: ${error.message}`);
      refused = error.message;
    }
  }, RENEWAL_MS);
  timer.unref();
}

const createServer = https.createServer;
https.createServer = function (options, answer) {
  // The other server that the proxy makes is the one for the hub's instructions.
  const isPublic = files.cert && fs.readFileSync(files.cert).equals(options.cert);
  if (!isPublic) return createServer.call(https, options, answer);
  const server = createServer.call(https, options, (request, response) => {
    if (hsts && hsts !== "0")
      response.setHeader("Strict-Transport-Security", `max-age=${hsts}`);
    return answer(request, response);
  });
  answerPlainHttp(server);
  followRenewals(server, options);
  return server;
};

// portal/internal_tls.py gives sessions the same names.
function sessionName(user) {
  const digest = createHash("sha256").update(user).digest("hex");
  return `${digest.slice(0, 32)}.session.internal`;
}

function expectedName({ hostname, host, port, path }) {
  const address = hostname ?? host;
  const isHub = hub && address === hub.hostname && Number(port) === Number(hub.port);
  const session = isHub ? null : SESSION.exec(path ?? "");
  if (session) return sessionName(decodeURIComponent(session[1]));
  return /^[\d.]+$|:/.test(address) ? "" : address; // an IP address has no name to ask for
}

https.Agent.prototype.addRequest = function (request, options, ...rest) {
  options.servername = expectedName(options);
  return http.Agent.prototype.addRequest.call(this, request, options, ...rest);
};
