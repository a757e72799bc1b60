/** A lane that runs two commands at once, and one that does not. */
import { InstanceManager, localInstance, TaskManager } from 'agent-tasks/server'
import type { Race, RaceOptions } from 'agent-tasks/testing'

interface World {
  readonly submit: () => void
  /** How many commands are running, and how many have ended. */
  readonly commands: { running: number; ended: number }
}

/** Makes a lane that runs `command` for each submit. Returns the submit function. */
type CreateLane = (race: Race, command: () => Promise<void>) => () => void

const race = (name: string, createLane: CreateLane): RaceOptions<World> => ({
  name,
  source: { module: './two-at-once.js', name },
  setup: (race) => {
    const commands = { running: 0, ended: 0 }
    const submit = createLane(race, async () => {
      commands.running += 1
      await race.pause('the command ends')
      commands.running -= 1
      commands.ended += 1
    })
    return { submit, commands }
  },
  actors: {
    alice: [{ label: 'submits', run: ({ submit }) => submit() }],
    bob: [{ label: 'submits', run: ({ submit }) => submit() }],
  },
  invariants: { 'one command at a time': ({ commands }) => commands.running <= 1 },
  atEnd: { 'both have run': ({ commands }) => commands.ended === 2 },
})

/** Wrong: it checks `isRunning`, awaits, and then sets it, so that two submits pass the check. */
export const naiveLane = race('naiveLane', (race, command) => {
  const queue: (() => Promise<void>)[] = []
  let isRunning = false
  const drain = async (): Promise<void> => {
    if (isRunning) return
    await race.pause('the instance is connected')
    isRunning = true
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await next()
    isRunning = false
  }
  return () => {
    queue.push(command)
    void drain()
  }
})

/** Right: the task manager of this package, whose lanes are actors. */
export const laneOfActors = race('laneOfActors', ({ clock }, command) => {
  const instances = new InstanceManager({ clock })
  instances.connect(localInstance({ id: 'browser', clock, tools: [{ name: 'click', execute: command }] }))
  const manager = new TaskManager({ instances, clock })
  return () => {
    manager.submitTask({ task_name: 'Click', instanceId: 'browser', commands: [{ tool_name: 'click' }] })
  }
})
