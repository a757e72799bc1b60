/** Registers new tasks: those that the caller runs itself (`register`), and those whose runs the manager starts (`launch`). */
import { holdsSlot } from '../../machines/task-status.js'
import type { z } from 'zod'
import type { ActiveTaskInfo, RunningTaskInfo } from '../../machines/records.js'
import type { QueueTicket, Requirements, TaskAdmission } from '../../machines/task-admission.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import { elapsedMs } from '../system/clock.js'
import { IsolatedController } from '../isolation/isolated-controller.js'
import { toOneLine } from '../data/control-characters.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { ChildTaskInput, RunChildren } from '../engine/children.js'
import { checkedParams } from '../engine/context-schema.js'
import { toFlatRunner } from '../engine/definition.js'
import type { Engine } from '../engine/engine.js'
import { createInProcessEngine } from '../engine/in-process.js'
import type { FindRunner, PreviousTask, Runner } from '../engine/runner.js'
import { DisposedError, InvalidInputError } from '../errors.js'
import type { launchInputSchema, registerTaskInputSchema } from '../protocol/async-tasks.js'
import { childTaskInputSchema, countingTerms } from '../protocol/async-tasks.js'
import { jsonBytes } from '../data/json-size.js'
import { checkOptions } from '../protocol/option-checks.js'
import { parseInput } from '../protocol/parse.js'
import { MAX_LEVELS, toWholePlainData } from '../data/plain-data.js'
import { toParams, type KeptParams } from '../protocol/run-fields.js'
import { aRetryPolicy } from '../protocol/retry-policy.js'
import type { Telemetry } from '../protocol/telemetry.js'
import { listen } from '../features/families/abort-link.js'
import { admissionError } from '../features/limits/admission-errors.js'
import { checkOwner, childFields, childrenOf, type CurrentRun, type FamilyHost } from '../features/families/families.js'
import { dependencies, isHeldBack, type Wait } from '../features/dependencies/dependencies.js'
import { checkAbove, needsOf } from '../features/named-slots/task-needs.js'
import { pendingIds, toStoredWait } from '../features/dependencies/stored-wait.js'
import { turnLaunches, type LaunchedWork } from '../features/kept-turns/turn-launches.js'
import { taskHistory } from '../features/history/past-tasks.js'
import { launchedRun } from './recovery/stored-run.js'
import type { ManagerSettings } from './manager-options.js'
import { DEFAULT_OWNER } from './owner.js'
import type { TaskRegistry } from './registry.js'
import type { CheckedLaunch } from './feature.js'
import { launchTraces } from './run-operation.js'
import { graceFor, launches, plans, runs, type RunStart } from './run-plan.js'
import type { RunHost } from './run-scope.js'
import { startPlanned, startRun, startStored } from './runs.js'

type LaunchFields = z.output<ReturnType<typeof launchInputSchema>>
type RegisterFields = z.output<ReturnType<typeof registerTaskInputSchema>>

/** A registered task, and its record at the time of registration. */
interface Admitted {
  readonly entry: TaskEntry
  readonly registered: ActiveTaskInfo
}

interface Launch extends CheckedLaunch {
  readonly input: LaunchFields
  readonly runner: Runner
  readonly params: KeptParams | undefined
  /** The ids of the tasks that it waits for. */
  readonly after: readonly string[] | undefined
  readonly parent: TaskEntry | undefined
  readonly previous: PreviousTask | undefined
  readonly reservationId: string | undefined
  /** What a turn that is to be kept launches. */
  readonly work: LaunchedWork | undefined
}

interface LaunchingManager extends FamilyHost {
  createTaskId(subagentName: string): string
}

export class Launcher implements RunHost {
  readonly registry: TaskRegistry
  readonly engine: Engine
  readonly telemetry: Telemetry | undefined
  readonly outputBytes: number
  readonly #manager: LaunchingManager
  readonly #findRunner: FindRunner | undefined
  readonly #graceMs: number
  readonly #isQueueing: boolean
  #isClosed = false

  constructor(registry: TaskRegistry, options: ManagerSettings, manager: LaunchingManager) {
    const { clock, report } = registry
    this.registry = registry
    this.#manager = manager
    this.engine =
      options.engine ??
      createInProcessEngine({
        clock,
        onError: (error, work) => report(error, { source: 'abort-listener', taskId: work.id }),
      })
    this.telemetry = options.telemetry
    this.outputBytes = options.outputBytes
    this.#findRunner = options.findRunner
    this.#graceMs = options.graceMs
    this.#isQueueing = options.whenFull === 'queue'
    registry.use(() => ({ start: (entry) => startPlanned(this, entry) }))
  }

  /** Refuses all further launches and registrations, because the manager is being disposed. */
  close(): void {
    this.#isClosed = true
  }

  /**
   * Registers a task that the caller runs. The returned record has the status `running`, even if an aborted controller has cancelled the task already.
   */
  register(fields: RegisterFields, reservationId: string | undefined): RunningTaskInfo {
    const { id, subagentName, goalPrompt, owner = DEFAULT_OWNER, timeoutMs, abortController } = fields
    const admission: TaskAdmission = {
      id,
      subagentName: toOneLine(subagentName),
      goalPrompt,
      owner,
      abortController,
      graceMs: fields.graceMs ?? this.#graceMs,
      terms: { timeoutMs },
    }
    const { entry, registered } = this.#admit(admission, false, reservationId)
    this.registry.afterLaunch(entry, () => undefined, this.registry.use(taskHistory).check(fields.id))
    return registered as RunningTaskInfo
  }

  /**
   * Registers a task, and starts its run unless it must wait.
   * @param parent the task whose run launches it
   * @param previous the task that it continues
   */
  launch(
    input: LaunchFields,
    runner: Runner,
    reservationId: string | undefined,
    parent: TaskEntry | undefined,
    previous?: PreviousTask,
  ): ActiveTaskInfo {
    const { registry } = this
    const { retry, isForeground } = input
    const copied = copyOf(toParams(input))
    if (retry !== undefined) checkOptions({ retry }, { retry: aRetryPolicy }, ['input'])
    const after = afterOf(input)
    const definition = toFlatRunner(runner, 'runner')
    const turns = registry.use(turnLaunches)
    const isToolCall = isForeground === true && definition.isBound === true
    const work =
      turns.isRecording && parent === undefined && !isToolCall
        ? { ...input, params: copied, continues: previous?.id }
        : undefined
    const launched = work && turns.take(work)
    if (launched !== undefined) return this.#joined(launched, input.abortController)
    // A continuation receives a message and the earlier task, so the schema of the context does not apply to it.
    const params = previous === undefined ? checkedParams(definition, copied) : copied
    const refusal = registry.features.first('refusal', { input, definition })
    if (refusal !== undefined) throw refusal
    const launch: Launch = { input, runner, definition, params, after, parent, previous, reservationId, work }
    const needs = needsOf(registry, input, definition)
    const waits = this.#mayWait(launch) || needs !== undefined
    const isRunAgain = retry !== undefined || definition.retry !== undefined || definition.durable === true
    const ticket = waits || isRunAgain ? ticketOf(launch, needs, elapsedMs(registry.clock)) : undefined
    return registry.batch(() => this.#start(launch, ticket, waits))
  }

  /** Returns the record of a task that an earlier, lost run of the calling turn has launched. */
  #joined(launched: TaskEntry, abortController: AbortController | undefined): ActiveTaskInfo {
    if (abortController !== undefined && launched.ref !== undefined) {
      listen(this.registry, abortController).link(launched)
    }
    return launched.record as ActiveTaskInfo
  }

  /** Whether the task waits when there is no slot. A task whose owner is held waits even if `whenFull` is `refuse`. */
  #mayWait({ input: { whenFull, owner = DEFAULT_OWNER }, after, parent }: Launch): boolean {
    const isQueueing = whenFull === undefined ? this.#isQueueing : whenFull === 'queue'
    return isQueueing || after !== undefined || (parent === undefined && this.registry.ownerHold(owner) !== undefined)
  }

  /** @param ticket with it, the task waits for a slot (`waits`), or may be run again */
  #start(launch: Launch, ticket: QueueTicket | undefined, waits: boolean): ActiveTaskInfo {
    const { registry } = this
    const { input, runner, definition, params, parent, previous, work } = launch
    const id = input.id ?? this.#manager.createTaskId(input.subagentName)
    const { owner = DEFAULT_OWNER, onFailedDependency = 'fail' } = input
    const wait =
      launch.after && registry.use(dependencies).plan(launch.after, onFailedDependency, { id, owner, parent })
    const admission = this.#launchAdmission(launch, id, wait, waits ? ticket : undefined)
    const { entry, registered } = this.#admit(admission, true, launch.reservationId, parent)
    if (work !== undefined) registry.use(turnLaunches).add(id, work)
    const trace = this.telemetry?.current()
    if (trace !== undefined) launchTraces.set(entry, trace)
    const start = { runner: definition, graceMs: admission.graceMs, params, previous }
    if (ticket !== undefined) plans.set(entry, { start, ticket, retry: input.retry ?? definition.retry })
    if (definition.isUnique !== true) launches.set(entry, { input, params, runner })
    if (wait !== undefined) registry.use(dependencies).begin(entry, wait)
    const run = registry.persistence === undefined ? startRun : startStored
    const past = input.id === undefined ? undefined : registry.use(taskHistory).check(input.id)
    registry.afterLaunch(entry, holdsSlot(registered.status) ? () => run(this, entry, start) : () => undefined, past)
    return registered
  }

  #launchAdmission(
    { input, definition, params, parent, previous }: Launch,
    id: string,
    wait: Wait | undefined,
    ticket: QueueTicket | undefined,
  ): TaskAdmission {
    const { retry, priority, isForeground, kind, command } = input
    const { persistence } = this.registry
    const child = parent && childFields(parent, kind)
    return {
      id,
      // Lists and instructions for a model contain the name in one line, so it must have no line breaks.
      subagentName: toOneLine(input.subagentName),
      goalPrompt: input.goalPrompt,
      owner: child?.owner ?? input.owner ?? DEFAULT_OWNER,
      abortController: input.abortController ?? this.newController(id),
      graceMs: graceFor(definition, input.graceMs ?? this.#graceMs),
      after: wait && [...wait.results.keys()],
      waitsFor: wait && isHeldBack(wait) ? pendingIds(wait) : undefined,
      run: persistence && {
        ...launchedRun(definition, params),
        ...omitUndefined({ retry, priority, after: wait && toStoredWait(wait), previous }),
      },
      ticket,
      isForeground,
      kind,
      command,
      pool: child?.pool ?? kind,
      parentId: child?.parentId,
      depth: child?.depth,
      previous,
      isDurable: definition.durable,
      terms: countingTerms(input, definition),
    }
  }

  findRunner(subagentName: string): Runner | undefined {
    return this.#findRunner?.(subagentName)
  }

  /**
   * Returns the runner of a subagent.
   * @throws INVALID_INPUT if `findRunner` does not know the subagent
   */
  knownRunner(subagentName: string, field: string, orElse = ''): Runner {
    const found = this.#findRunner?.(subagentName)
    if (found !== undefined) return found
    throw new InvalidInputError(field, subagentName, `a subagent that this host can start${orElse}`)
  }

  /** @param runner default: the runner of the subagent in `input` */
  launchChild(parent: TaskEntry, input: ChildTaskInput, runner: Runner = this.#runnerOf(input)): ActiveTaskInfo {
    return this.launch(parseInput(childTaskInputSchema(), input, 'input'), runner, undefined, parent)
  }

  childrenOf(parent: TaskEntry, run: CurrentRun): RunChildren {
    return childrenOf(this.#manager, parent, run)
  }

  /** Continues a run that an earlier process has started, or starts the next run of its task once that start is stored. */
  resumeRun(entry: TaskEntry, start: RunStart): void {
    this.link(entry)
    if (start.isResumed === true) startRun(this, entry, start)
    else this.registry.persistence?.after({ onStored: () => startStored(this, entry, start) })
  }

  /** From now on, an abort of the controller of a task cancels the task. */
  link(entry: TaskEntry): void {
    const { abortController } = entry.record
    if (abortController !== undefined) listen(this.registry, abortController).link(entry)
  }

  newController(taskId: string): IsolatedController {
    return new IsolatedController((error) => this.registry.report(error, { source: 'abort-listener', taskId }))
  }

  #admit(
    admission: TaskAdmission,
    isLaunched: boolean,
    reservationId: string | undefined,
    parent?: TaskEntry,
  ): Admitted {
    const { registry } = this
    if (this.#isClosed) throw new DisposedError()
    const needs = admission.ticket?.needs
    if (parent !== undefined && needs !== undefined) checkAbove(registry, parent, needs, admission.isForeground)
    if (parent === undefined) checkOwner(registry, admission.owner, 'input.owner')
    const { abortController } = admission
    const abort = abortController && listen(registry, abortController)
    const answer = registry.ask({ type: 'task.register', admission, isLaunched, reservationId, parent })
    if (answer === undefined || !('entry' in answer)) {
      abort?.stop()
      if (answer === undefined) throw new DisposedError()
      throw admissionError(registry, answer.refusal, admission, reservationId)
    }
    const { entry } = answer
    const registered = entry.record as ActiveTaskInfo
    registry.use(runs).launched(entry)
    abort?.link(entry)
    return { entry, registered }
  }

  #runnerOf({ subagentName }: ChildTaskInput): Runner {
    return this.knownRunner(subagentName, 'input.subagentName', ', or a runner as the second argument of launch()')
  }
}

/**
 * Returns the ids of the tasks that a launch waits for; undefined if there are none.
 * @throws INVALID_INPUT for a foreground launch, because its caller would wait for the other tasks too
 */
function afterOf({ after = [], isForeground }: LaunchFields): readonly string[] | undefined {
  if (after.length === 0) return undefined
  if (isForeground !== true) return after
  throw new InvalidInputError(
    'input.after',
    after,
    'nothing for a foreground task (isForeground), because its caller would also wait for these tasks',
  )
}

/** @throws InvalidInputError */
function copyOf(params: KeptParams | undefined): KeptParams | undefined {
  const copied = params && toWholePlainData(params)
  if (params === undefined || copied !== undefined) return copied
  throw new InvalidInputError('input.context', params['context'], `a value nested at most ${MAX_LEVELS} levels deep`)
}

/** @param since when the launch began, on the monotonic clock */
function ticketOf(launch: Launch, needs: Requirements | undefined, since: number): QueueTicket {
  const { input, params, after, previous } = launch
  const held = { goal: input.goalPrompt, params, ...omitUndefined({ after, previous }) }
  const ticket = { priority: input.priority ?? 0, since, bytes: jsonBytes(held, Infinity) }
  return needs === undefined ? ticket : { ...ticket, needs }
}
