// Drives a stock client: node drive.mjs CLIENT INPUT
//
// INPUT is JSON: {url, login, operations: [{query, variables, take}]}. The operations
// run one after the other; one with `take` is cancelled after so many results. What
// happens is told on standard output, an event a line: {event, value}.

process.stdin.on('end', () => process.exit()).resume().unref(); // with whoever started this

const say = (event, value) => console.log(JSON.stringify({ event, value }));
const [name, input] = process.argv.slice(2);
const { url, login = {}, operations } = JSON.parse(input);

/** What there is to tell of an error: GraphQL's own, a close code, a status, or a text. */
const reasonOf = (error) =>
  Array.isArray(error) ? error : (error.code ?? error.response?.status ?? error.statusCode ?? error.message ?? String(error));

const run = (client, { query, variables, take = Infinity }) =>
  new Promise((resolve) => {
    let left = take;
    const end = (event, value) => {
      say(event, value);
      resolve();
    };
    const cancel = client.subscribe(
      { query, variables },
      {
        next(result) {
          if (left === 0) return;
          say('next', result);
          if (--left > 0) return;
          queueMicrotask(() => {
            cancel();
            end('cancelled');
          });
        },
        error: (error) => left > 0 && end('error', reasonOf(error)),
        complete: () => left > 0 && end('complete'),
      },
    );
  });

const { connect } = await import(`./${name}.mjs`);
const client = connect({ url, login }, say);
for (const operation of operations) await run(client, operation);
await client.close();
