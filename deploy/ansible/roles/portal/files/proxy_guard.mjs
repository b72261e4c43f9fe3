// Loaded into the proxy before its own program (node --import): what of a request goes no further.
//
// An address that cannot be decoded is its sender's fault; configurable-http-proxy answers 500. And
// two headers are taken out from which the hub and the sessions would believe where a browser is:
// the proxy itself appends what it saw to X-Forwarded-For and X-Forwarded-Proto.

import { Server as PlainServer } from "node:http";
import { Server as TlsServer } from "node:https";

const hsts = process.env.PORTAL_HSTS_SECONDS;
const NOT_FROM_OUTSIDE = ["x-real-ip", "x-scheme"];

function isReadable(address) {
  try {
    return !decodeURIComponent(new URL(address, "http://localhost").pathname).includes("\0");
  } catch {
    return false;
  }
}

function refuse(answer) {
  // A connection that was to become a websocket has no answer yet.
  if (typeof answer.writeHead === "function") {
    // As each other answer (proxy_front.mjs), which this one does not come to.
    if (answer.socket?.encrypted && hsts && hsts !== "0")
      answer.setHeader("Strict-Transport-Security", `max-age=${hsts}`);
    answer.writeHead(400, { "Content-Type": "text/plain" });
    answer.end("The address cannot be read.\n");
  } else {
    answer.end("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  }
}

for (const server of [PlainServer, TlsServer]) {
  const emit = server.prototype.emit;
  server.prototype.emit = function (event, request, answer, ...more) {
    if (event === "request" || event === "upgrade") {
      if (!isReadable(request.url)) {
        refuse(answer);
        return true;
      }
      for (const name of NOT_FROM_OUTSIDE) delete request.headers[name];
    }
    return emit.call(this, event, request, answer, ...more);
  };
}
