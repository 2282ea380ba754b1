// Runs the audits of GraphQL over HTTP: node audit.mjs URL
// Each result is a line of JSON on standard output: {event: ID, value: {name, status, reason}}.

import { auditServer } from 'graphql-http';

const [url] = process.argv.slice(2);
for (const { id, name, status, reason } of await auditServer({ url })) {
  console.log(JSON.stringify({ event: id, value: { name, status, reason } }));
}
