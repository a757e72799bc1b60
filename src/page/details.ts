/** Collects what the page shows about one task. The data comes from the task's manager, or from the journal once the manager has forgotten the task. */
import { LABELLED_FIELDS, RECORD_FIELDS } from '../../machines/record-fields.js'
import type { AsyncTaskInfo, TaskQuestion } from '../../machines/records.js'
import { endedAs } from '../../machines/task-status.js'
import { runTraces } from '../async-tasks/run-operation.js'
import { cutText } from '../data/cut-text.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { Task } from '../protocol/command-tasks.js'
import type { TraceContext } from '../protocol/telemetry.js'
import { asyncKey, type AsyncEntry } from './async-entry.js'
import { causeText } from './cause-text.js'
import { barOf, type CommandEntry, type KeptCommand } from './command-entry.js'
import { shownWords } from './command-words.js'
import { copyCommandTask, copySubagent } from './copy-as.js'
import { describeImage, findImages, type FoundImage } from './images.js'
import { parsedKept, shownKept } from './kept-values.js'
import type { PageEntry } from './page-entry.js'
import { whyNotAgain } from './run-again.js'
import { recordOf, taskOf, type Sources } from './sources.js'
import { traceUrlOf } from './trace-link.js'
import { cutValue, isLongJson, readBeginning, shownValue, type ShownValue } from './values.js'
import type { CutValue, PageTaskDetail } from './wire.js'

/** How much of a value is sent with the task's details: of an async task and of a command in bytes, of an error message in UTF-16 units. */
const VALUE_BYTES = 64 * 1024
const COMMAND_VALUE_BYTES = 8 * 1024
const TEXT_CHARS = 20_000

/** The maximum number of commands in the details of a task. */
const MAX_COMMANDS = 200

/**
 * Returns the values of a task by name. An async task has `goal`, `result`, `error` and `cause`. A command task has `args.<index>` and `result.<index>`
 * for each command.
 */
export function valuesOf(sources: Sources, entry: PageEntry): ReadonlyMap<string, ShownValue> {
  const values: [string, ShownValue | undefined][] = []
  if (entry.kind === 'async') {
    const { kept } = entry
    const whole = recordOf(sources, entry)
    const { error } = whole ?? {}
    const output = endedAs(whole, 'failed') ? whole.lateOutput : whole?.output
    values.push(
      ['goal', whole === undefined ? kept && shownKept(kept.goal) : shownValue(whole.goalPrompt)],
      ['result', whole === undefined ? kept?.output && shownKept(kept.output) : shownIf(output)],
      ['error', whole === undefined ? kept?.error && shownKept(kept.error) : shownIf(error)],
      ['cause', causeOf(whole, entry)],
    )
  }
  if (entry.kind === 'command') {
    const task = taskOf(sources, entry)
    task?.commands.forEach(({ args, result }, index) => {
      values.push([`args.${index}`, shownValue(args)])
      values.push([`result.${index}`, shownIf(result)])
    })
    if (task === undefined) {
      entry.kept?.commands.forEach(({ args, result }, index) => {
        values.push([`args.${index}`, shownKept(args)])
        values.push([`result.${index}`, result && shownKept(result)])
      })
    }
  }
  return new Map(values.filter((pair): pair is [string, ShownValue] => pair[1] !== undefined))
}

const shownIf = (value: unknown): ShownValue | undefined => (value === undefined ? undefined : shownValue(value))

export function imagesOf(sources: Sources, entry: PageEntry): FoundImage[] {
  if (entry.kind === 'async') {
    const record = recordOf(sources, entry)
    const output = entry.kept?.output
    if (record === undefined) return findImages([output && parsedKept(output)])
    return findImages([endedAs(record, 'failed') ? record.lateOutput : record.output])
  }
  const task = taskOf(sources, entry)
  if (task !== undefined) return findImages(task.commands.map(({ result }) => result))
  return findImages(entry.kept?.commands.map(({ result }) => result && parsedKept(result)) ?? [])
}

export async function detailOf(sources: Sources, entry: PageEntry): Promise<PageTaskDetail> {
  const { state } = sources
  const values = valuesOf(sources, entry)
  const images = imagesOf(sources, entry).map(describeImage)
  const [goal, result, cause] = await Promise.all(
    ['goal', 'result', 'cause'].map((name) => shown(values.get(name), VALUE_BYTES)),
  )
  const whyNot = await whyNotAgain(sources, entry)
  const answers = state.journal.answersOf(entry.key)
  const common = {
    task: state.rowOf(entry),
    ...omitUndefined({ goal, result, traceUrl: traceUrlOf(sources.traceUrl, traceOf(sources, entry)) }),
    ...(images.length > 0 && { images }),
    ...(answers.length > 0 && { answers }),
    events: state.journal.eventsOf(entry.key),
    can: {
      cancel: !entry.isEnded,
      runAgain: whyNot === undefined,
      ...(isInForeground(entry) && { detach: true }),
      ...(mayConclude(entry) && { conclude: true }),
      ...omitUndefined({ whyNot }),
    },
  }
  if (entry.kind === 'async') return { ...common, ...asyncDetail(sources, entry, cause) }
  return { ...common, ...(await commandDetail(sources, entry, values)) }
}

function traceOf({ manager, taskManager }: Sources, entry: PageEntry): TraceContext | undefined {
  if (entry.kept !== undefined) return entry.kept.trace
  if (entry.kind === 'command') return taskManager?.traceOf(entry.id)
  const retained = manager?.reads.history.get(entry.record.id)
  return retained && runTraces.get(retained)
}

/** Whether the run of a task works, and was not asked to conclude or to stop. */
const mayConclude = (entry: PageEntry): boolean =>
  entry.kind === 'async' && (entry.state === 'running' || entry.state === 'asking')

const isInForeground = (entry: PageEntry): boolean => entry.kind === 'async' && entry.record.isForeground === true

function asyncDetail(sources: Sources, entry: AsyncEntry, cause: CutValue | undefined) {
  const whole = recordOf(sources, entry)
  const { kept, children, neededBy } = entry
  const record = whole ?? entry.record
  const isErrorCut = whole === undefined && kept?.error?.isCut === true
  const { error, cancelReason, questions, attempts, budget, spent, timeoutMs, kind, command } = record
  const { errorName, errorCode } = record as { readonly errorName?: string; readonly errorCode?: string }
  const { pid, exitCode, signal } = record
  const facts = factsOf(record)
  return {
    ...(error !== undefined && {
      error: {
        message: { ...cutValue(error, TEXT_CHARS), ...(isErrorCut && { isCut: true }) },
        ...(errorName !== undefined && { name: cutValue(errorName, 200).text }),
        ...(errorCode !== undefined && { code: cutValue(errorCode, 200).text }),
        ...omitUndefined({ cause }),
      },
    }),
    ...omitUndefined({ cancelReason }),
    ...(facts.length > 0 && { facts }),
    ...(questions !== undefined && questions.length > 0 && { questions: questions.map(shownQuestion) }),
    ...omitUndefined({ attempts, budget, spent, timeoutMs }),
    ...(kind === 'command' && {
      program: {
        command: shownWords(command ?? []),
        ...omitUndefined({ pid, exitCode, signal }),
      },
    }),
    ...(children.length > 0 && { children }),
    ...(record.after !== undefined && { after: record.after.map(asyncKey) }),
    ...(neededBy.length > 0 && { neededBy }),
    copyAs: copySubagent(record, whole === undefined && kept?.goal.isCut === true),
  }
}

function factsOf(record: AsyncTaskInfo): { readonly name: string; readonly text: string }[] {
  return LABELLED_FIELDS.flatMap((field) => {
    const value: unknown = record[field]
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return value === undefined ? [] : { name: RECORD_FIELDS[field].label, text: cutText(text, TEXT_CHARS) }
  })
}

/** Replaces a large answer schema with an empty one. The page then shows the question without fields for an answer. */
const shownQuestion = (question: TaskQuestion): TaskQuestion =>
  isLongJson(question.schema, VALUE_BYTES) ? { ...question, schema: { type: 'object' } } : question

async function commandDetail(sources: Sources, entry: CommandEntry, values: ReadonlyMap<string, ShownValue>) {
  const task = taskOf(sources, entry)
  const commands = (task?.commands.map(describeCommand) ?? entry.kept?.commands ?? []).slice(0, MAX_COMMANDS)
  const described = await Promise.all(
    commands.map(async ({ tool, state, startedAt, endedAt, error }, index) => {
      const [args, result] = await Promise.all([
        shown(values.get(`args.${index}`), COMMAND_VALUE_BYTES),
        shown(values.get(`result.${index}`), COMMAND_VALUE_BYTES),
      ])
      return {
        tool,
        state,
        ...omitUndefined({ startedAt, endedAt }),
        args: args ?? cutValue('', 0),
        ...omitUndefined({ result }),
        ...(error !== undefined && { error: cutValue(error, TEXT_CHARS).text }),
      }
    }),
  )
  const message = task?.error?.message ?? entry.row().error
  return {
    commands: described,
    ...(message !== undefined && {
      error: {
        message: cutValue(message, TEXT_CHARS),
        ...(task?.error !== undefined && { code: cutValue(task.error.code, 200).text }),
      },
    }),
    copyAs: copyCommandTask(sources, entry, task),
  }
}

function describeCommand(command: Task['commands'][number]): Omit<KeptCommand, 'args' | 'result' | 'call'> {
  return { ...barOf(command), ...(command.error !== undefined && { error: command.error.message }) }
}

function causeOf(record: AsyncTaskInfo | undefined, { kept }: AsyncEntry): ShownValue | undefined {
  if (kept?.cause !== undefined) return shownKept(kept.cause)
  if (!endedAs(record, 'failed') || record.cause === undefined) return undefined
  return shownValue(causeText(record.cause))
}

const shown = (value: ShownValue | undefined, maxBytes: number): Promise<CutValue | undefined> =>
  value === undefined ? Promise.resolve(undefined) : readBeginning(value, maxBytes)
