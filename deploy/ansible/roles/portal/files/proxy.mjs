// The portal's proxy: configurable-http-proxy, which JupyterHub tells its routes, with what stands
// between browsers and sessions. It is reached through the front (nginx) only.
//
// A session's answers are its user's own program, and so is every page at /user/NAME/. Where all
// sessions share one host name, and so one origin, such a page could act as whoever looks at it.
// Hence the gate: a browser reaches NAME's session only with the cookie that the hub gave it when
// NAME logged in (portal/dsportal/hub/patches/gate.py). A request with a token does not come from a browser's link, and
// the session judges it. With a host name for each user, browsers keep the pages apart themselves.
//
// One argument: a file of JSON with what is read below.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import https from "node:https";
import { createRequire } from "node:module";
import { checkServerIdentity } from "node:tls";
import { pathToFileURL } from "node:url";

const settings = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const resolve = createRequire(`${settings.environment}/`).resolve;
const { ConfigurableProxy } = await import(
  pathToFileURL(resolve("configurable-http-proxy/lib/configproxy.js"))
);
const { defaultLogger } = await import(
  pathToFileURL(resolve("configurable-http-proxy/lib/log.js"))
);

const SESSION = /^\/user\/([^/?]+)/;
const BEHIND = /^\/(user|services)\//;
const TOKEN = /^(token|bearer)\s+\S/i;
// What a browser keeps for the whole origin, or for the host on all its ports.
const FOR_THE_ORIGIN = [
  "alt-svc",
  "clear-site-data",
  "nel",
  "report-to",
  "service-worker-allowed",
  "strict-transport-security",
];
const UNREAD_MS = 2_000;
// The front keeps connections that it does not use for 60 s, and must be the one that closes them: a
// request that it sends on one that closes at that moment would be lost.
const UNUSED_MS = 75_000;
// Sessions and services do so after 30 s (portal/dsportal/request_limits.py), and here the proxy must
// be the one that closes.
const UNUSED_BEHIND_MS = 20_000;
// How many connections may wait to be accepted: as many as the kernel lets. To a socket in a folder
// the next one is refused at once, and the front then says that the portal is away.
const WAITING = 4096;
// The hub says when a proxy that has just started knows all routes (portal/dsportal/hub/proxy.py). Until
// then the proxy itself says "not now" for those that it does not know: if the hub had to, with hundreds
// of pages that try again, it would not come to tell them. A hub of an older release does not say it.
const ALL_TOLD = "/api/routes/portal-all-told";
const UNTOLD_MS = 60_000;
const NOT_NOW = { "Retry-After": "3", Refresh: "3" };
const gateKey = createHmac("sha256", process.env.CONFIGPROXY_AUTH_TOKEN)
  .update("portal gate")
  .digest();

function isReadable(address) {
  try {
    return !decodeURIComponent(new URL(address, "http://localhost").pathname).includes("\0");
  } catch {
    return false;
  }
}

// Whose login the browser has; null where it has none, or more than one: the second is not the hub's.
function loginOf(request) {
  const start = `${settings.gate_cookie}=`;
  const given = (request.headers.cookie ?? "")
    .split(";")
    .map((cookie) => cookie.trim())
    .filter((cookie) => cookie.startsWith(start));
  if (given.length !== 1) return null;
  const [expires, name, signature] = given[0].slice(start.length).split(".");
  const expected = createHmac("sha256", gateKey).update(`${expires}.${name}`).digest();
  const found = Buffer.from(signature ?? "", "base64url");
  if (found.length !== expected.length || !timingSafeEqual(found, expected)) return null;
  if (Number(expires) < Date.now() / 1000) return null;
  return Buffer.from(name, "base64url").toString("utf8");
}

function refuse(request, answer, status, words, headers = {}) {
  const head = { "Content-Type": "text/plain", "Content-Length": Buffer.byteLength(words) };
  const all = { ...head, ...headers };
  if (typeof answer.writeHead === "function") {
    answer.writeHead(status, all);
    answer.end(words);
    // To close with a part of the body unread would take the answer away from who reads it.
    request.resume();
    const deadline = setTimeout(() => request.socket.destroy(), UNREAD_MS);
    request.once("close", () => clearTimeout(deadline));
    return;
  }
  // A connection that was to become a websocket.
  all.Connection = "close";
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  answer.end(`HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${lines.join("")}\r\n${words}`);
}

// Whether a cookie stays below the session's own addresses (RFC 6265, 5.1.4 and 5.2.4).
function isOwnCookie(cookie, prefix, address) {
  let path = address.slice(0, address.lastIndexOf("/"));
  for (const attribute of cookie.split(";").slice(1)) {
    const [name, ...value] = attribute.split("=");
    if (name.trim().toLowerCase() === "domain") return false;
    const given = value.join("=").trim();
    if (name.trim().toLowerCase() === "path" && given.startsWith("/")) path = given;
  }
  if (path.includes("..")) return false;
  try {
    return `${decodeURIComponent(path)}/`.startsWith(`${prefix}/`);
  } catch {
    return false;
  }
}

// What the session of `prefix` may say to a browser.
function curb(headers, prefix, address, isShared) {
  for (const name of FOR_THE_ORIGIN) delete headers[name];
  if (headers.server) headers.server = "portal";
  const cookies = headers["set-cookie"]?.filter((cookie) => isOwnCookie(cookie, prefix, address));
  if (cookies?.length) headers["set-cookie"] = cookies;
  else delete headers["set-cookie"];
  headers["content-security-policy"] ??= "frame-ancestors 'self'";
  headers["x-content-type-options"] ??= "nosniff";
  // What one login was shown, a later one in the same browser asks for anew.
  if (isShared) headers.vary = headers.vary ? `${headers.vary}, Cookie` : "Cookie";
}

class PortalProxy extends ConfigurableProxy {
  #toldAt = Date.now() + UNTOLD_MS;

  constructor(options) {
    super(options);
    this.proxy.on("proxyRes", (found, request) => this.#curb(found, request));
    this.proxy.on("proxyReqWs", (asked, request) => {
      asked.on("upgrade", (found) => this.#curb(found, request));
      asked.on("response", (found) => this.#curb(found, request));
    });
  }

  async handleProxy(kind, request, answer, head) {
    if (!isReadable(request.url)) return refuse(request, answer, 400, "The address cannot be read.\n");
    let route;
    try {
      route = await this.targetForReq(request);
    } catch {
      // Its routes are kept in plain objects, each of which has a "constructor" (version 5.1.0).
      return refuse(request, answer, 404, "There is no such page.\n");
    }
    const path = (this.hostRouting ? route?.prefix.replace(/^\/[^/]+/, "") : route?.prefix) ?? "";
    if (Date.now() < this.#toldAt && BEHIND.test(request.url) && !BEHIND.test(`${path}/`))
      return refuse(request, answer, 503, "The portal has just started: try again.\n", NOT_NOW);
    const session = SESSION.exec(path);
    // A host of the user's own is the user's whole.
    const prefix = this.hostRouting ? "" : session?.[0];
    if (session) request.session = { prefix, isShared: !this.hostRouting };
    if (session && !this.hostRouting && !this.#isLetIn(session[1], kind, request, answer)) return;
    return super.handleProxy(kind, request, answer, head);
  }

  // A request to the API has its token in its head: without it, nothing of its body is read.
  handleApiRequest(request, answer) {
    const [, token] = /^token\s+(\S+)$/.exec(request.headers.authorization ?? "") ?? [];
    if (token !== this.authToken) return refuse(request, answer, 403, "A token is needed.\n");
    if (request.method === "POST" && request.url === ALL_TOLD) {
      this.#toldAt = Date.now();
      return refuse(request, answer, 201, "");
    }
    return super.handleApiRequest(request, answer);
  }

  #isLetIn(name, kind, request, answer) {
    if (TOKEN.test(request.headers.authorization ?? "")) return true;
    const isWorker = request.headers["service-worker"] !== undefined;
    if (loginOf(request) === name && !isWorker) return true;
    if (kind === "web" && ["GET", "HEAD"].includes(request.method) && !isWorker) {
      const target = `/hub/portal/gate?next=${encodeURIComponent(request.url)}`;
      refuse(request, answer, 302, "", { Location: target });
    } else {
      refuse(request, answer, 403, "This is another user's session.\n");
    }
    return false;
  }

  #curb(found, request) {
    if (!request.session) return;
    const { prefix, isShared } = request.session;
    curb(found.headers, prefix, request.url.split("?")[0], isShared);
  }
}

// With JupyterHub's internal_ssl, a session must have the certificate of the user whose pages are
// asked for; node would look for the name that the browser asked for. portal/dsportal/hub/internal_tls.py gives
// sessions the same names.
const OF_SESSIONS = ".session.internal";

function sessionName(user) {
  const digest = createHash("sha256").update(user).digest("hex");
  return `${digest.slice(0, 32)}${OF_SESSIONS}`;
}

// Who has the hub's port, or a service's, while it is away is not the hub for that: a session's
// certificate has the addresses of its nodes, and sessions may run on the hub's own machine.
function isNoSession(host, certificate) {
  if (String(certificate.subject?.CN).endsWith(OF_SESSIONS))
    return new Error(`${host}: a session's certificate in the place of the hub's`);
  return checkServerIdentity(host, certificate);
}

const hub = new URL(settings.hub_url);

function expectedName({ hostname, host, port, path }) {
  const address = hostname ?? host;
  const isHub = address === hub.hostname && Number(port) === Number(hub.port);
  const session = isHub ? null : SESSION.exec(path ?? "");
  if (session) return sessionName(decodeURIComponent(session[1]));
  return /^[\d.]+$|:/.test(address) ? "" : address; // an IP address has no name to ask for
}

https.Agent.prototype.addRequest = function (request, options, ...rest) {
  options.servername = expectedName(options);
  if (!options.servername.endsWith(OF_SESSIONS)) options.checkServerIdentity = isNoSession;
  return http.Agent.prototype.addRequest.call(this, request, options, ...rest);
};

const pair = (files) =>
  files && {
    key: fs.readFileSync(files.key),
    cert: fs.readFileSync(files.cert),
    ca: fs.readFileSync(files.ca),
    requestCert: true,
    rejectUnauthorized: true,
  };

// What ends a connection must not end the proxy.
process.on("uncaughtException", (error) => console.error(error));

const proxy = new PortalProxy({
  log: defaultLogger({ level: "warn" }),
  authToken: process.env.CONFIGPROXY_AUTH_TOKEN,
  // The hub answers for sessions that are not there.
  defaultTarget: settings.hub_url,
  errorTarget: `${settings.hub_url}/hub/error`,
  hostRouting: settings.host_routing,
  apiSsl: pair(settings.api_tls),
  clientSsl: pair(settings.client_tls),
  // The front says where a request comes from.
  xfwd: false,
  prependPath: true,
  includePrefix: true,
  keepAliveTimeout: UNUSED_MS,
});
// Its own requests, for the pages of errors, show the certificate as well.
Object.assign(proxy.httpsAgent.options, proxy.options.clientSsl);
// An agent closes what is unused for so long; a request that is under way has all its time.
for (const agent of [proxy.httpAgent, proxy.httpsAgent]) agent.options.timeout = UNUSED_BEHIND_MS;
fs.rmSync(settings.socket, { force: true });
proxy.proxyServer.listen({ path: settings.socket, backlog: WAITING }, () =>
  fs.chmodSync(settings.socket, 0o600),
);
proxy.apiServer.listen(settings.api_port, "127.0.0.1");
