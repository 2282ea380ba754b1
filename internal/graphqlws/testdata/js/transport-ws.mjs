// Drives the graphql-ws client: node transport-ws.mjs URL SCENARIO
// Each event is a line of JSON on standard output.
import { createClient } from 'graphql-ws'
import WebSocket from 'ws'

const [url, scenario] = process.argv.slice(2)
const say = (event, value) => console.log(JSON.stringify({ event, value }))

const client = createClient({
  url,
  webSocketImpl: WebSocket,
  connectionParams: { as: scenario === 'refused' ? 'nobody' : 'somebody' },
  on: {
    connecting: () => say('connecting'),
    closed: (event) => say('closed', event.code),
  },
})

// run resolves when the operation has ended, one way or the other.
const run = (query) =>
  new Promise((resolve) => {
    client.subscribe(
      { query },
      {
        next: (result) => say('next', result),
        error: (error) => {
          say('error', Array.isArray(error) ? error : (error.code ?? String(error)))
          resolve()
        },
        complete: () => {
          say('complete')
          resolve()
        },
      },
    )
  })

switch (scenario) {
  case 'operations':
    await run('subscription { count(to: 3) }')
    await run('subscription { breaks(after: 1) }')
    await run('{ nothing }')
    await run('mutation { add(n: 4) }')
    break
  case 'refused':
    await run('subscription { never }')
    break
  case 'restart':
    await run('subscription { state(pad: 0) { n } }')
    break
  case 'cancel': {
    const events = client.iterate({ query: 'subscription { count(to: 1000000) }' })
    for await (const { data } of events) {
      if (data.count === 3) break
    }
    say('cancelled')
    await run('{ hello }')
    break
  }
}
await client.dispose()
