/**
 * Knows which tasks the turns have launched that are not kept yet. A turn that is lost, for example in a crash, is taken again with the same message, and
 * usually launches the same. It gets these tasks instead of second ones (promise H8).
 */
import { z } from 'zod'
import { takeRows } from '../../async-tasks/recovery/state-rows.js'
import type { Feature, FeatureStates } from '../../async-tasks/feature.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import type { QuestionRef } from '../../../machines/owed-questions.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { endedAs, wasStopped } from '../../../machines/task-status.js'
import { toOneLine } from '../../data/control-characters.js'
import { orderedJson } from '../../data/ordered-json.js'
import { toPlainData } from '../../data/plain-data.js'
import { currentTurn, type TurnMarker } from '../../isolation/current-turn.js'
import { lazily } from '../../protocol/lazily.js'
import { toParams, type KeptParams, type RunFields } from '../../protocol/run-fields.js'
import type { LaunchTaskInput } from '../../protocol/async-tasks.js'
import type { StoredJson } from '../../store/store.js'
import { nodeBuiltin } from '../../system/node-builtins.js'

const FEATURE = 'turnLaunches'

/** The maximum number of launches that are known. The earliest are forgotten first. */
const MAX_LAUNCHES = 1000

/** What makes two launches the same. Limits and the place in which the result is awaited do not count. */
export type LaunchedWork = Pick<
  LaunchTaskInput,
  'id' | 'subagentName' | 'goalPrompt' | 'owner' | 'after' | 'kind' | 'command' | keyof RunFields
> & {
  /** More that its runs receive. Default: the fields for the run. */
  readonly params?: KeptParams | undefined
  /** The id of the task that it continues. */
  readonly continues?: string | undefined
}

/** What starts a turn again after it was lost. */
export interface TurnMessage {
  readonly owner: string
  readonly inputId: string | undefined
  readonly delivery: { readonly taskIds: readonly string[]; readonly questions?: readonly QuestionRef[] } | undefined
}

interface TurnLaunch {
  readonly taskId: string
  /** The turn that has launched the task: one of the names of a turn. */
  readonly turn: string
  /** The SHA-256 of the work. */
  readonly work: string
  /** Its place among the launches. */
  readonly seq: number
  /** The turn of this process that has launched the task, or was given it. */
  by: TurnMarker | undefined
}

const storedLaunchSchema = lazily(() =>
  z.object({ id: z.string(), turn: z.string(), work: z.string(), seq: z.number() }),
)

/** The message with which a turn begins again: one with an id, or one with the result of a task. */
export interface RepeatedMessage {
  readonly owner: string
  readonly type: 'input' | 'task' | 'question'
  readonly id: string
}

export class TurnLaunches implements Feature {
  readonly states: FeatureStates = {
    feature: FEATURE,
    prepare: (rows) => this.#prepare(rows),
    restore: () => this.#restored(),
  }
  readonly #registry: TaskRegistry
  /** The names of each turn that is to be kept. A message with several results is found again by any of them. */
  readonly #names = new WeakMap<TurnMarker, readonly string[]>()
  /** The launches by turn and by task, each in their order. */
  readonly #byTurn = new Map<string, Set<TurnLaunch>>()
  readonly #byTask = new Map<string, TurnLaunch>()
  #lastSeq = 0
  #isRestoring = false

  constructor(registry: TaskRegistry) {
    this.#registry = registry
  }

  /** Begins a turn that is to be kept. A message without an id is not sent again after a crash, so its turn has no name. */
  begin(marker: TurnMarker, { owner, inputId, delivery }: TurnMessage): void {
    const ofDelivery: Omit<RepeatedMessage, 'owner'>[] = [
      ...(delivery?.taskIds ?? []).map((id) => ({ type: 'task', id }) as const),
      ...(delivery?.questions ?? []).map(
        (asked) => ({ type: 'question', id: `${asked.taskId}/${asked.questionId}` }) as const,
      ),
    ]
    const messages = inputId === undefined ? ofDelivery : [{ type: 'input', id: inputId } as const]
    this.#names.set(
      marker,
      messages.map((message) => nameOf({ owner, ...message })),
    )
    this.offer()
  }

  /** Whether all tasks of an earlier process are restored. */
  get areRestored(): boolean {
    return !this.#isRestoring
  }

  /** Returns the message of the turn that has launched a task; undefined if no turn has, or if it is kept. */
  messageOf(taskId: string): RepeatedMessage | undefined {
    const launch = this.#byTask.get(taskId)
    return launch && messageOf(launch.turn)
  }

  /** Lets the history prune records of launches. Call it when turns will not be taken again. */
  offer(): void {
    const { history } = this.#registry
    for (const taskId of this.#byTask.keys()) {
      const entry = history.get(taskId)
      if (entry !== undefined) history.offer(entry)
    }
    if (history.hasExcess()) this.#registry.send({ type: 'history.prune' })
  }

  /** Whether the calling code is part of a turn that is to be kept, so that its launches are noted. */
  get isRecording(): boolean {
    return this.#current() !== undefined
  }

  /** Whether the calling code is part of a turn that was lost after it had launched this work. */
  has(work: LaunchedWork): boolean {
    return this.#find(work) !== undefined
  }

  /**
   * Returns the task that the lost turn has launched for this work; undefined if the calling code is part of no such turn. Each call returns another
   * task. A task that has failed is returned once, so that a turn which cannot go on with it launches the work anew when it is repeated.
   */
  take(work: LaunchedWork): TaskEntry | undefined {
    const found = this.#find(work)
    if (found === undefined) return undefined
    const { launch, marker, entry } = found
    launch.by = marker
    if (endedAs(entry.record, 'failed')) this.#registry.batch(() => this.#drop(launch))
    return entry
  }

  /** Notes that the calling code has launched a task. It is stored in one write with the task. */
  add(taskId: string, work: LaunchedWork): void {
    const { marker, names: [turn] = [] } = this.#current() ?? {}
    if (marker === undefined || turn === undefined) return
    this.#lastSeq += 1
    const launch = { taskId, turn, work: digest(work), seq: this.#lastSeq, by: marker }
    this.#insert(launch)
    const [earliest] = this.#byTask.values()
    if (earliest !== undefined && this.#byTask.size > MAX_LAUNCHES) this.#drop(earliest)
    this.#registry.persistence?.keepState(FEATURE, taskId, { turn, work: launch.work, seq: launch.seq })
  }

  /** Forgets the launches of a turn that is kept, in one write with it: it is not taken again. */
  kept(marker: TurnMarker): void {
    const names = this.#names.get(marker) ?? []
    for (const name of names) for (const launch of [...(this.#byTurn.get(name) ?? [])]) this.#drop(launch)
  }

  /** Forgets the launches in turns of an owner. */
  forget(owner: string): void {
    for (const [name, ofTurn] of this.#byTurn) {
      if (messageOf(name).owner === owner) for (const launch of [...ofTurn]) this.#drop(launch)
    }
  }

  pruned({ record }: TaskEntry): void {
    const launch = this.#byTask.get(record.id)
    if (launch !== undefined) this.#drop(launch)
  }

  #current(): { readonly marker: TurnMarker; readonly names: readonly string[] } | undefined {
    const marker = currentTurn()?.outermost
    const names = marker && this.#names.get(marker)
    return marker && names && { marker, names }
  }

  #find(work: LaunchedWork) {
    const { marker, names = [] } = this.#current() ?? {}
    const known = names.flatMap((name) => [...(this.#byTurn.get(name) ?? [])])
    if (marker === undefined || known.length === 0) return undefined
    const wanted = digest(work)
    for (const launch of known) {
      const entry = this.#registry.history.get(launch.taskId)
      if (launch.work !== wanted || launch.by === marker || entry === undefined || !counts(entry)) continue
      return { launch, marker, entry }
    }
    return undefined
  }

  #insert(launch: TurnLaunch): void {
    const known = this.#byTask.get(launch.taskId)
    if (known !== undefined) this.#byTurn.get(known.turn)?.delete(known)
    this.#byTask.set(launch.taskId, launch)
    const ofTurn = this.#byTurn.get(launch.turn) ?? new Set()
    this.#byTurn.set(launch.turn, ofTurn.add(launch))
  }

  #drop(launch: TurnLaunch): void {
    const ofTurn = this.#byTurn.get(launch.turn)
    ofTurn?.delete(launch)
    if (ofTurn?.size === 0) this.#byTurn.delete(launch.turn)
    this.#byTask.delete(launch.taskId)
    this.#registry.persistence?.dropState(FEATURE, launch.taskId)
    const entry = this.#registry.history.get(launch.taskId)
    if (entry !== undefined) this.#registry.history.offer(entry)
  }

  /** Done before the tasks are restored, because it keeps their records. */
  #prepare(rows: ReadonlyMap<string, StoredJson>): void {
    const found: Omit<TurnLaunch, 'by'>[] = []
    takeRows(this.#registry, { feature: FEATURE, schema: storedLaunchSchema(), rows }, ({ id: taskId, ...launch }) => {
      found.push({ taskId, ...launch })
    })
    for (const launch of found.sort((a, b) => a.seq - b.seq)) {
      this.#insert({ ...launch, by: undefined })
      this.#lastSeq = launch.seq
    }
    this.#isRestoring = true
  }

  #restored(): void {
    this.#isRestoring = false
    for (const launch of [...this.#byTask.values()]) {
      if (this.#registry.history.get(launch.taskId) === undefined) this.#drop(launch)
    }
    this.offer()
  }
}

/** The length of the owner keeps the turns of two owners apart. */
const nameOf = ({ owner, type, id }: RepeatedMessage): string => `${owner.length}/${owner}/${type}/${id}`

function messageOf(name: string): RepeatedMessage {
  const from = name.indexOf('/') + 1
  const end = from + Number.parseInt(name, 10)
  const [type = '', ...id] = name.slice(end + 1).split('/')
  return { owner: name.slice(from, end), type: type as RepeatedMessage['type'], id: id.join('/') }
}

/** Whether the launch of a task was stored, and the task was not cancelled. */
const counts = ({ record }: TaskEntry): boolean =>
  !wasStopped(record.status) && !(endedAs(record, 'failed') && record.errorCode === 'NOT_STORED')

function digest({
  id,
  subagentName,
  goalPrompt,
  owner,
  params,
  after,
  kind,
  command,
  continues,
  ...fields
}: LaunchedWork): string {
  const name = toOneLine(subagentName)
  // The task that is continued determines everything else.
  const rest =
    continues === undefined ? { id, owner, params: params ?? toParams(fields), after, kind, command } : { continues }
  const work = { name, goalPrompt, ...rest }
  return nodeBuiltin('node:crypto')
    .createHash('sha256')
    .update(orderedJson(toPlainData(work)))
    .digest('hex')
}

export const turnLaunches = (registry: TaskRegistry): TurnLaunches => new TurnLaunches(registry)
