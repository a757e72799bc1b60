/** A host that takes two turns at once, and one that does not. */
import { createAgentTasks, type AgentTasksOptions } from 'agent-tasks'
import { createTurns } from 'agent-tasks/parts'
import type { Race, RaceOptions } from 'agent-tasks/testing'

/** How a host takes turns: `ask` for the user, and two options of `createAgentTasks` for results. */
interface Turns extends Pick<AgentTasksOptions, 'isAgentBusy' | 'triggerAgentTurn'> {
  readonly ask: () => unknown
}

/** Creates the turns of a host: each calls `answer`, which asks the model. */
type CreateTurns = (race: Race, answer: () => Promise<void>) => Turns

function openHost(race: Race, createTurns: CreateTurns) {
  const model = { requests: 0 }
  const { ask, ...options } = createTurns(race, async () => {
    model.requests += 1
    await race.pause('the model answers')
    model.requests -= 1
  })
  const tasks = createAgentTasks({
    ...options,
    clock: race.clock,
    subagents: { digger: () => race.pause('gold is found').then(() => 'Gold!') },
  })
  return { model, ask, tasks }
}

type Host = ReturnType<typeof openHost>

const race = (name: string, createTurns: CreateTurns): RaceOptions<Host> => ({
  name,
  source: { module: './first-host.js', name },
  setup: (race) => openHost(race, createTurns),
  actors: {
    agent: [{ label: 'launches gold', run: ({ tasks }) => void tasks.launch('digger', 'Find gold', { id: 'gold' }) }],
    user: [{ label: 'asks', run: ({ ask }) => ask() }],
  },
  invariants: { 'one turn at a time': ({ model }) => model.requests <= 1 },
  teardown: ({ tasks }) => tasks.dispose(),
})

/** Wrong: it is busy only once the session is loaded, so that two turns may start meanwhile. */
export const hastyHost = race('hastyHost', (race, answer) => {
  let isBusy = false
  const turn = async () => {
    await race.pause('the session is loaded')
    isBusy = true
    await answer()
    isBusy = false
  }
  return { ask: () => (isBusy ? 'refused: busy' : turn()), isAgentBusy: () => isBusy, triggerAgentTurn: turn }
})

/** Right: `createTurns` takes one turn at a time, and is busy until the last one has ended. */
export const hostWithTurns = race('hostWithTurns', (race, answer) => {
  const turns = createTurns(async () => {
    await race.pause('the session is loaded')
    await answer()
  })
  return {
    ask: () => turns.take('What is new?'),
    isAgentBusy: turns.isBusy$,
    triggerAgentTurn: turns.triggerAgentTurn,
  }
})
