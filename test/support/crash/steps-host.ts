/**
 * The host of `npm run crash:steps`, which runs until it is killed. It takes over a durable task, or launches the next one when the last one has ended.
 * The task has ten steps. It also sleeps, waits for an event, asks a question, and launches a task and waits for it.
 *
 * Its arguments: the folder, and how many tasks to run in all. A step records that it ran, and a run records what each step has returned.
 * `steps-judge.ts` compares these records.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AsyncTaskManager, type RunContext, type RunnerDefinition } from 'agent-tasks'
import { openStore } from 'agent-tasks/store'
import { crashStore } from './crash-store.js'
import { PARTS } from './steps-judge.js'
import type { SettledTaskInfo } from '../../../machines/records.js'

const [folder = '', last = ''] = process.argv.slice(2)
const note = (file: string, line: string): void => appendFileSync(join(folder, file), `${line}\n`)
const linesOf = (file: string): string[] =>
  existsSync(join(folder, file)) ? readFileSync(join(folder, file), 'utf8').split('\n').filter(Boolean) : []

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Runs a step. Records what this process did in it (`done`), and what the run received (`seen`). */
async function part({ step, taskId }: RunContext, name: string): Promise<void> {
  const got = await step(name, async () => {
    await pause(Math.random() * 6)
    const value = `${process.pid}-${Math.random()}`
    note('done', `${taskId} ${name} ${value}`)
    return value
  })
  note('seen', `${taskId} ${name} ${got}`)
}

const agent: RunnerDefinition = {
  durable: true,
  releasesSlot: true,
  maxConcurrent: 1,
  run: async (_input, context) => {
    const { taskId, sleep, waitFor, ask, launch, children } = context
    note('runs', taskId)
    const [first, second, third, ...rest] = PARTS
    for (const name of [first, second, third]) await part(context, name)
    await sleep(15)
    note('seen', `${taskId} event ${String(await waitFor('go'))}`)
    const { content } = await ask('Go on?')
    note('seen', `${taskId} answer ${String(content?.['answer'])}`)
    const child = launch({ subagentName: 'child', goalPrompt: taskId })
    await Promise.all(rest.slice(0, 2).map((name) => part(context, name)))
    // At the latest, the launch is stored together with these steps.
    note('seen', `${taskId} child ${child.id}`)
    const { settled } = await children.waitFor([child.id])
    note('seen', `${taskId} settled ${settled.map(({ id, status }) => `${id}=${status}`).join()}`)
    await sleep(15)
    for (const name of rest.slice(2)) await part(context, name)
    return { final_message: taskId }
  },
}
const child: RunnerDefinition = {
  run: async ({ id }) => {
    await pause(Math.random() * 10)
    return { final_message: id }
  },
  retry: { attempts: 1000, on: ['interrupted'], backoff: { initialMs: 0 } },
}

process.send?.('starting')
const manager = new AsyncTaskManager({
  store: await openStore(crashStore(folder)),
  maxAsyncTasks: 1,
  whenFull: 'queue',
  graceMs: 100,
  findRunner: (name) => (name === 'agent' ? agent : child),
  wasDelivered: (deliveryId) => linesOf('transcript').some((line) => line.startsWith(`${deliveryId} `)),
})
await manager.recovered
manager.settled$.subscribe(() => setImmediate(() => void deliver()))
await deliver()
process.send?.('ready')

function toldAs(task: SettledTaskInfo): string {
  return `${task.id}=${task.status}${task.status === 'failed' ? `:${task.errorCode}` : ''}`
}

async function deliver(): Promise<void> {
  const lease = manager.lease()
  if (lease === undefined) return
  await lease.stored
  note('transcript', `${lease.deliveryId} ${lease.tasks.map(toldAs).join(' ')}`)
  lease.acknowledge()
  await manager.stored()
}

/**
 * Sends the event to the task, unless a record says that it was sent. A host may have been killed after it sent the event and before it recorded that.
 * Then the event is sent again, and the task keeps the second event unused.
 */
async function sendEvent(id: string): Promise<void> {
  if (linesOf('events').includes(id)) return
  await manager.emit('go', id, { taskId: id })
  note('events', id)
}

/** Answers the open question of the task, if there is one. */
async function answerQuestion(id: string): Promise<void> {
  const [question] = manager.getTask(id)?.questions ?? []
  if (question === undefined) return
  note('questions', `${id} ${question.id}`)
  const answer = `${process.pid}-${Math.random()}`
  if (!manager.answerTask(id, question.id, answer)) return
  await manager.stored()
  note('answers', `${id} ${answer}`)
}

for (;;) {
  const count = new Set(linesOf('launches')).size
  const [active] = manager.getActiveTasks().filter(({ subagentName }) => subagentName === 'agent')
  if (active !== undefined) {
    // The launch was stored, but the host was killed before it could record the launch.
    if (!linesOf('launches').includes(active.id)) note('launches', active.id)
    await sendEvent(active.id).catch(() => undefined)
    await answerQuestion(active.id)
  } else if (count >= Number(last)) break
  else {
    const id = `task-${count}`
    if (manager.getTask(id) === undefined) manager.launch({ id, subagentName: 'agent', goalPrompt: id }, agent)
    await manager.stored()
    if (!linesOf('launches').includes(id)) note('launches', id)
    continue
  }
  await pause(5)
}
await manager.onIdle()
await deliver()
const left = manager.registry.persistence === undefined ? 0 : manager.getActiveTasks().length
await manager.dispose()
const store = await openStore(crashStore(folder))
const rows = store.open().featureStates.filter(({ feature }) => feature === 'steps').length
await store.close()
note('left', `${left} ${rows}`)
process.exit()
