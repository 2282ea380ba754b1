// The whole flow, one tab for each step.

/** The lecture that is open when the server starts on its demo; ids are opaque elsewhere. */
const lecture = JSON.stringify({ lectureId: '1' }, null, 2);

const POSITION = `status
    lineState
    position
    total
    estimatedWaitSeconds
    seatChance
    message
    ticketExpiresAt
    reason
    serverTime`;

/** What a student does, from signing in to cancelling. */
const student = [
  {
    query: `# 1. Sign in as a guest. All tabs send this
# token, over HTTP and over the socket, unless
# their Headers have an Authorization of their
# own. Where guests are off, put yours there.
mutation SignIn($name: String!) {
  startSession(name: $name) {
    token
    expiresAt
    viewer {
      userKey
      name
    }
  }
}
`,
    variables: JSON.stringify({ name: 'Ada' }, null, 2),
  },
  {
    query: `# 2. Look at what there is. The next tabs need
# one of these ids in their Variables.
query Lectures($search: String) {
  lectures(first: 20, search: $search) {
    totalCount
    nodes {
      id
      title
      lineState
      capacity
      seatsLeft
      waiting
      opensAt
    }
  }
}
`,
    variables: JSON.stringify({ search: null }, null, 2),
  },
  {
    query: `# 3. Take a place in the line. Doing it again
# changes nothing.
mutation Join($lectureId: ID!) {
  joinQueue(lectureId: $lectureId) {
    ${POSITION}
    placeToken
  }
}
`,
    variables: lecture,
  },
  {
    query: `# 4. Watch your place, live over a WebSocket,
# until you stop it, change to another tab, or
# have enrolled.
subscription Watch($lectureId: ID!) {
  queuePosition(lectureId: $lectureId) {
    ${POSITION}
    receipt {
      number
    }
  }
}
`,
    variables: lecture,
  },
  {
    query: `# 5. Admitted? A seat is held for you until
# ticketExpiresAt. Take it.
mutation Enrol($lectureId: ID!) {
  enroll(lectureId: $lectureId) {
    status
    receipt {
      number
      enrolledAt
    }
    position {
      status
      lineState
    }
  }
}
`,
    variables: lecture,
  },
  {
    query: `# 6. The proof. null: you are not enrolled.
query Receipt($lectureId: ID!) {
  receipt(lectureId: $lectureId) {
    id
    number
    userKey
    enrolledAt
    lecture {
      title
      seatsLeft
    }
  }
}
`,
    variables: lecture,
  },
  {
    query: `# 7. Give the seat back. It goes to the next in
# line, and the receipt is kept.
mutation Cancel($lectureId: ID!) {
  cancelEnrollment(lectureId: $lectureId) {
    number
    enrolledAt
    cancelledAt
  }
}
`,
    variables: lecture,
  },
];

/** What an operator does. */
const operator = [
  {
    query: `# 8. Operators: create a lecture. The token is in
# Headers if you came by the operator's link that
# the server prints. Otherwise put yours there.
mutation CreateLecture($input: CreateLectureInput!) {
  createLecture(input: $input) {
    id
    title
    lineState
    settings {
      admitPerSecond
      ticketTtlSeconds
    }
  }
}
`,
    variables: JSON.stringify({
      input: { title: 'Compilers', capacity: 2, settings: { admitPerSecond: 1, burst: 1, ticketTtlSeconds: 60 } },
    }, null, 2),
  },
  {
    query: `# 9. Operators: the line in figures, live.
subscription LineStats($lectureId: ID!) {
  lineStats(lectureId: $lectureId) {
    lineState
    waiting
    held
    inFlight
    seatsLeft
    enrolledCount
    capacity
    admitPerSecond
    admittedPerMinute
    claimRate
    serverTime
  }
}
`,
    variables: lecture,
  },
];

/**
 * @param {string | null} token An operator's, where there is one.
 * @returns {{ query: string, variables: string, headers?: string }[]}
 */
export function examples(token) {
  const headers = JSON.stringify({ Authorization: `Bearer ${token ?? "<an operator's token>"}` }, null, 2);
  return [...student, ...operator.map((tab) => ({ ...tab, headers }))];
}
