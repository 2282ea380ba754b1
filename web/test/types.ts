// Compiled and never run: what the types of the SDK promise to those who use them.

import { createClient, SeatlineError, type QueuePosition, type WatchStatus } from '../static/sdk.js';

const client = createClient({ url: 'https://seats.example/graphql', token: async ({ refused }) => (refused ? null : 'token') });

const stop: () => void = client.watchPosition(
  '1',
  (place: QueuePosition) => {
    const number: number | null = place.position;
    // @ts-expect-error A place may have no number.
    const wrong: number = place.position;
    // @ts-expect-error There is no such status.
    if (place.status === 'DONE') stop();
    return [number, wrong];
  },
  { onStatus: (status: WatchStatus) => status.error?.code },
);

// @ts-expect-error A lecture must be named.
client.watchPosition((place: QueuePosition) => place);

client.query('{ viewer { name } }').catch((error: unknown) => error instanceof SeatlineError && error.retryAfterMs);
