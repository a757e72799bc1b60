/** A host that takes two turns at once, and one that does not. */
import { createAgentTasks } from 'agent-tasks'
import type { Race, RaceOptions } from 'agent-tasks/testing'

interface Agent {
  /** How many turns are going on. */
  turns: number
  /** What the host calls busy. */
  isBusy: boolean
}

/** Takes a turn: `answer` asks the model. */
type TakeTurn = (race: Race, agent: Agent, answer: () => Promise<void>) => Promise<void>

function openHost(race: Race, takeTurn: TakeTurn) {
  const agent: Agent = { turns: 0, isBusy: false }
  const turn = () =>
    takeTurn(race, agent, async () => {
      agent.turns += 1
      await race.pause('the model answers')
      agent.turns -= 1
    })
  const tasks = createAgentTasks({
    clock: race.clock,
    isAgentBusy: () => agent.isBusy,
    triggerAgentTurn: turn,
  })
  return { agent, turn, tasks }
}

type Host = ReturnType<typeof openHost>

const race = (name: string, takeTurn: TakeTurn): RaceOptions<Host> => ({
  name,
  source: { module: './first-host.js', name },
  setup: (race) => openHost(race, takeTurn),
  actors: {
    agent: [
      {
        label: 'launches gold',
        run: ({ tasks }, race) => {
          const goldIsFound = () => race.pause('gold is found').then(() => ({ final_message: 'Gold!' }))
          tasks
            .getAsyncTaskManager()
            .launch({ id: 'gold', subagentName: 'digger', goalPrompt: 'Find gold' }, goldIsFound)
        },
      },
    ],
    user: [{ label: 'asks', run: ({ agent, turn }) => (agent.isBusy ? 'refused: busy' : turn()) }],
  },
  invariants: { 'one turn at a time': ({ agent }) => agent.turns <= 1 },
  teardown: ({ tasks }) => tasks.dispose(),
})

/** Wrong: it is busy only once the session is loaded, so that two turns may start meanwhile. */
export const hastyHost = race('hastyHost', async (race, agent, answer) => {
  await race.pause('the session is loaded')
  agent.isBusy = true
  await answer()
  agent.isBusy = false
})

/** Right: it is busy before it awaits anything. */
export const busyHost = race('busyHost', async (race, agent, answer) => {
  agent.isBusy = true
  await race.pause('the session is loaded')
  await answer()
  agent.isBusy = false
})
