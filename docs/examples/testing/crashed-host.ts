/** A host of your own that loses a result when it crashes, and a version that does not. It uses only the race kit. */
import type { Race, RaceOptions } from 'agent-tasks/testing'

/** The files of the host, and what the worker knows. All of it survives a crash. */
interface Files {
  /** Results that the agent has not read. */
  readonly inbox: string[]
  /** What the agent has read. */
  readonly transcript: string[]
  /** Results that the worker knows are safe. */
  readonly safe: string[]
}

const files = (): Files => ({ inbox: [], transcript: [], safe: [] })

/** How a host passes the next result of its inbox on to the agent. */
type Pass = (race: Race<Files>, result: string) => Promise<void>

function openHost(race: Race<Files>, pass: Pass) {
  const { disk, message, pause } = race
  let isPassing = false
  const passAll = async (): Promise<void> => {
    if (isPassing) return
    isPassing = true
    for (let [next] = disk.inbox; next !== undefined; [next] = disk.inbox) {
      await pause('the agent is idle')
      await pass(race, next)
    }
    isPassing = false
  }
  // What the life before this one has left.
  void passAll()
  return {
    ...disk,
    report: async (result: string): Promise<void> => {
      await message('the inbox is written', () => disk.inbox.push(result))
      disk.safe.push(result)
      void passAll()
    },
  }
}

type Host = ReturnType<typeof openHost>

const race = (name: string, pass: Pass): RaceOptions<Host, undefined, Files> => ({
  name,
  source: { module: './crashed-host.js', name },
  crashes: true,
  disk: files,
  setup: (race) => openHost(race, pass),
  actors: {
    worker: [
      { label: 'reports a', run: ({ report }) => report('a') },
      { label: 'reports b', run: ({ report }) => report('b') },
    ],
  },
  invariants: {
    'the agent reads a result once': ({ transcript }) => new Set(transcript).size === transcript.length,
  },
  atEnd: {
    'the agent has read what is safe': ({ safe, transcript }) => safe.every((result) => transcript.includes(result)),
  },
})

/** Wrong: between its two writes the result is nowhere. */
export const forgetfulHost = race('forgetfulHost', async ({ disk, message }, result) => {
  await message('the inbox is written', () => disk.inbox.shift())
  await message('the transcript is written', () => disk.transcript.push(result))
})

/** Right: the result leaves the inbox when it is in the transcript, and the transcript says whether it is. */
export const carefulHost = race('carefulHost', async ({ disk, message }, result) => {
  if (!disk.transcript.includes(result)) {
    await message('the transcript is written', () => disk.transcript.push(result))
  }
  await message('the inbox is written', () => disk.inbox.shift())
})
