/** What an earlier process left in a store: it is taken over when a manager is created, and the outcome of its messages is found out. */
import type { RunningTaskInfo } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import { endSurvivor } from '../engine/program-folder.js'
import { reapProgram, toStartedProgram } from '../engine/reap.js'
import type { Runner } from '../engine/runner.js'
import type { RestorableRecord } from '../protocol/async-tasks.js'
import type { StoredDelivery, StoredTask } from '../store/store.js'
import type { Persistence } from './persistence.js'
import type { TaskRegistry } from './registry.js'
import { toRestoredRecords } from './restoring.js'

/** Whether a message with this id is in the transcript of the host; undefined if that is not known. */
export type WasDelivered = (deliveryId: string) => boolean | undefined | Promise<boolean | undefined>

/** What was found in the store, as ids of tasks. */
export interface Recovery {
  /** Their programs survived, and go on. */
  readonly adopted: readonly string[]
  /** Their runs ended with the process: they have failed. */
  readonly interrupted: readonly string[]
  /** Nobody knows whether their message arrived: they are owed again, as possible repeats. */
  readonly uncertain: readonly string[]
}

/** How the runs of an earlier process go on. */
export interface RecoveryHost {
  readonly wasDelivered: WasDelivered | undefined
  /** The runner of a subagent; undefined when there is none of this name. */
  readonly findRunner: ((subagentName: string) => Runner | undefined) | undefined
  /** Goes on with a run. */
  readonly resumeRun: (entry: TaskEntry, runner: Runner, graceMs: number) => void
  /** Makes the controller of a task. */
  readonly newController: (taskId: string) => AbortController
}

/** Takes over what is stored. Resolves when it is known which results are owed; never rejects. */
export function recover(registry: TaskRegistry, persistence: Persistence, host: RecoveryHost): Promise<Recovery> {
  const contents = persistence.takeContents()
  const carried = new Set(contents.deliveries.flatMap(({ taskIds }) => taskIds))
  const survivors = contents.tasks.filter((task) => findSurvivor(task, host) !== undefined)
  const isSurvivor = new Set(survivors)
  const records = contents.tasks.filter((task) => !isSurvivor.has(task)).map((task) => toRecord(task, carried))
  const stored = new Map(contents.tasks.map((task) => [task.id, task]))
  const interrupted: string[] = []
  registry.batch(() => {
    for (const record of toRestoredRecords(records, registry.clock.now())) {
      registry.send({ type: 'task.restore', record })
      const entry = registry.history.get(record.id)
      const task = stored.get(record.id)
      if (entry === undefined || task === undefined) continue
      const isInterrupted = task.status === 'running'
      persistence.restore(
        entry,
        { attempt: task.attempt, deadlineAt: task.deadlineAt, run: task.run ?? {} },
        isInterrupted,
      )
      if (!isInterrupted) continue
      interrupted.push(task.id)
      endProgram(persistence, entry, task)
    }
    for (const task of survivors) adopt(registry, persistence, task, host)
    // Nothing else carries these results until it is known whether their messages arrived.
    for (const { id, taskIds } of contents.deliveries) registry.send({ type: 'lease.restore', deliveryId: id, taskIds })
  })
  const adopted = survivors.map(({ id }) => id)
  return decide(registry, contents.deliveries, host.wasDelivered).then((uncertain) => ({
    adopted,
    interrupted,
    uncertain,
  }))
}

/** Nothing of an interrupted run goes on. */
function endProgram(persistence: Persistence, entry: TaskEntry, { run = {} }: StoredTask): void {
  const program = toStartedProgram(run['program'])
  if (program !== undefined) reapProgram(program)
  const folder = persistence.folderOf(entry)
  if (folder !== undefined) endSurvivor(folder)
}

function findSurvivor({ status, record }: StoredTask, { findRunner }: RecoveryHost): Runner | undefined {
  const runner = status === 'running' ? findRunner?.(String(record['subagentName'])) : undefined
  return runner?.survivesHost === true ? runner : undefined
}

/** Goes on with a task: what remains of its time limit is what the clock on the wall says, and never more than all of it. */
function adopt(registry: TaskRegistry, persistence: Persistence, task: StoredTask, host: RecoveryHost): void {
  const { id, attempt, deadlineAt, run = {} } = task
  const runner = findSurvivor(task, host)
  if (runner === undefined) return
  const stored = task.record as unknown as RunningTaskInfo
  const { questions: _, ...fields } = stored
  const record = Object.freeze({ ...fields, abortController: host.newController(id) })
  const graceMs = typeof run['graceMs'] === 'number' ? run['graceMs'] : 0
  const remainingMs =
    deadlineAt === undefined || record.timeoutMs === undefined
      ? undefined
      : Math.min(Math.max(deadlineAt - registry.clock.now(), 0), record.timeoutMs)
  const entry = registry.resume(record, graceMs, remainingMs)
  persistence.restore(entry, { attempt, deadlineAt, run }, false)
  host.resumeRun(entry, runner, graceMs)
}

/** A result that was in a message is owed until it is known that the message arrived. */
function toRecord({ record, id }: StoredTask, carried: ReadonlySet<string>): RestorableRecord {
  const restorable = record as unknown as RestorableRecord
  if (!carried.has(id) || restorable.delivery !== 'delivered') return restorable
  const { notifiedAt: _, ...fields } = restorable
  return { ...fields, delivery: 'owed' }
}

async function decide(
  registry: TaskRegistry,
  deliveries: readonly StoredDelivery[],
  wasDelivered: WasDelivered | undefined,
): Promise<string[]> {
  const uncertain: string[] = []
  for (const { id: deliveryId, owner } of deliveries) {
    let answer: boolean | undefined
    try {
      answer = await wasDelivered?.(deliveryId)
    } catch (error) {
      registry.report(error, { source: 'delivery', owner, deliveryId })
    }
    const lease = registry.ledger.lease(deliveryId)
    if (lease === undefined || registry.isDisposed) continue
    if (answer === true) {
      registry.batch(() => {
        registry.send({ type: 'lease.acknowledge', deliveryId })
        registry.persistence?.confirmDelivery(deliveryId)
      })
      continue
    }
    if (answer === undefined) {
      for (const entry of lease.entries) {
        registry.markRepeat(entry)
        uncertain.push(entry.record.id)
      }
    }
    registry.send({ type: 'lease.release', deliveryId })
  }
  return uncertain
}
