// A way to the server with faults in it.

import { createServer, request } from 'node:http';
import { connect } from 'node:net';

/**
 * Passes requests and sockets on to a server, until it is told not to.
 *
 * @param {string} target
 */
export async function startProxy(target) {
  const { hostname, port } = new URL(target);
  /** @type {Set<import('node:net').Socket>} */
  const pipes = new Set();
  const faults = {
    /** Refuse sockets, as a company's proxy might. */
    refuseUpgrades: false,
    /** Answer nothing at all. */
    refuseRequests: false,
    /** How often a socket has been asked for. */
    upgrades: 0,
    /** How often anything else has been. */
    requests: 0,
  };
  const server = createServer((incoming, outgoing) => {
    faults.requests++;
    if (faults.refuseRequests) {
      incoming.socket.destroy();
      return;
    }
    const onward = request({ hostname, port, path: incoming.url, method: incoming.method, headers: incoming.headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on('error', () => incoming.socket.destroy());
    incoming.pipe(onward);
  });
  server.on('upgrade', (incoming, socket, head) => {
    faults.upgrades++;
    if (faults.refuseUpgrades) {
      socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n');
      return;
    }
    const onward = connect(Number(port), hostname, () => {
      const headers = Object.entries(incoming.headers).map(([name, value]) => `${name}: ${value}\r\n`).join('');
      onward.write(`${incoming.method} ${incoming.url} HTTP/1.1\r\n${headers}\r\n`);
      onward.write(head);
      socket.pipe(onward).pipe(socket);
    });
    pipes.add(onward);
    for (const end of [socket, onward]) {
      end.on('error', () => {});
      end.on('close', () => {
        socket.destroy();
        onward.destroy();
        pipes.delete(onward);
      });
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const address = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${address.port}`,
    faults,
    /** The network goes away without a word: sockets stay open and carry nothing. */
    stall() {
      for (const pipe of pipes) pipe.pause().unpipe();
    },
    async close() {
      for (const pipe of pipes) pipe.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
