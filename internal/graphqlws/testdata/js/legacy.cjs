// Drives the subscriptions-transport-ws client: node legacy.cjs URL SCENARIO
// Each event is a line of JSON on standard output.
const { SubscriptionClient } = require('subscriptions-transport-ws')
const WebSocket = require('ws')

const [url, scenario] = process.argv.slice(2)
const say = (event, value) => console.log(JSON.stringify({ event, value }))

const client = new SubscriptionClient(
  url,
  {
    reconnect: scenario === 'restart',
    connectionParams: { as: scenario === 'refused' ? 'nobody' : 'somebody' },
    connectionCallback: (error) => error && say('refused', error),
  },
  WebSocket,
)
client.onConnecting(() => say('connecting'))
client.onReconnecting(() => say('connecting'))
client.onDisconnected(() => say('closed', client.client?.code))

const run = (query) =>
  new Promise((resolve) => {
    client.request({ query }).subscribe({
      next: (result) => say('next', result),
      error: (errors) => {
        say('error', [].concat(errors)) // the client unwraps a list of one
        resolve()
      },
      complete: () => {
        say('complete')
        resolve()
      },
    })
  })

async function main() {
  switch (scenario) {
    case 'operations':
      await run('subscription { count(to: 3) }')
      await run('subscription { breaks(after: 1) }')
      await run('{ nothing }')
      await run('mutation { add(n: 4) }')
      break
    case 'refused':
      await new Promise((resolve) => client.onDisconnected(resolve))
      break
    case 'restart':
      await run('subscription { state(pad: 0) { n } }')
      break
    case 'cancel':
      await new Promise((resolve) => {
        const subscription = client.request({ query: 'subscription { count(to: 1000000) }' }).subscribe({
          next: ({ data }) => {
            if (data.count !== 3) return
            subscription.unsubscribe()
            resolve()
          },
        })
      })
      say('cancelled')
      await run('{ hello }')
      break
  }
  client.close()
}
main()
