/** The context that a runner gets. What an earlier run of the task does with its context has no effect (promise A1). */
import type { ActiveTaskInfo, ProgramFacts } from '../../machines/records.js'
import { reportMethods } from '../engine/report-methods.js'
import type { RunContext, RunDurability } from '../engine/runner.js'
import type { WaitForOptions } from '../engine/steps.js'
import { QuestionWithdrawnError } from '../errors.js'
import { endedError } from '../features/families/families.js'
import { wrapUpSignal } from '../features/limits/wrap-up.js'
import { appendOutput } from '../features/output/output-stream.js'
import { reportField } from '../features/output/reports.js'
import { Inbox, inboxes, NO_MESSAGES } from '../features/questions/inbox.js'
import { askQuestion } from '../features/questions/questions.js'
import { unawaited } from '../isolation/unawaited.js'
import { sessionSchema } from '../protocol/async-tasks.js'
import { spendSchema } from '../protocol/budget.js'
import { toOutput } from '../protocol/outcomes.js'
import { parseInput } from '../protocol/parse.js'
import type { TraceContext } from '../protocol/telemetry.js'
import type { RunAbort, RunScope } from './run-scope.js'

type OpenContext = { -readonly [F in keyof RunContext]: RunContext[F] }

interface ContextOptions {
  readonly durability: RunDurability | undefined
  readonly trace: TraceContext | undefined
  readonly messages: RunContext['messages']
}

/** The messages that a run receives. */
export const messagesOf = ({ entry, start: { runner } }: RunScope): RunContext['messages'] =>
  runner.takesMessages === true ? inboxes.ensure(entry, () => new Inbox()).open() : NO_MESSAGES

/** Its fields are own properties, so that a wrapping runner can copy it with `{ ...context }`. They are assigned one by one, because spreads are slow. */
export function contextOf(
  scope: RunScope,
  abort: RunAbort,
  { durability, trace, messages }: ContextOptions,
): RunContext {
  const { host, entry, attempt, isDurable } = scope
  const { registry } = host
  const { id, kind } = entry.record
  const context: Omit<OpenContext, 'report'> = {
    get signal() {
      return abort.signal
    },
    taskId: id,
    get owner() {
      return entry.record.owner
    },
    attempt,
    append: (text) => {
      if (scope.isCurrent) appendOutput(registry, entry, text, host.outputBytes)
    },
    ask: (question, options) => {
      if (!scope.isCurrent) return Promise.reject(new QuestionWithdrawnError(id))
      if (!isDurable) return askQuestion(registry, entry, question, options)
      return unawaited(() => scope.steps(abort).ask(question, options))
    },
    messages,
    setSession: (sessionId, options = {}) => {
      const session = parseInput(sessionSchema(), { ...options, id: sessionId }, 'session')
      if (scope.isCurrent) registry.send({ type: 'task.note', entry, fields: { session } })
    },
    spend: (amount) => {
      const spent = parseInput(spendSchema(), amount, 'amount')
      if (scope.isCurrent && entry.ref !== undefined) registry.spend(entry, spent)
    },
    offer: (output) => {
      const offered = toOutput(output)
      if (scope.isCurrent) registry.batch(() => entry.ref?.send({ type: 'task.offer', output: offered }))
    },
    launch: (child, childRunner) => {
      if (!scope.isCurrent) throw endedError(id)
      const launch = (): ActiveTaskInfo => host.launchChild(entry, child, childRunner)
      return isDurable ? scope.steps(abort).launch(launch) : launch()
    },
    get children() {
      const children = host.childrenOf(entry, { signal: abort.signal, isCurrent: () => scope.isCurrent })
      return isDurable ? scope.steps(abort).children(children) : children
    },
    step: (name, work, options) => unawaited(() => scope.steps(abort).step(name, work, options)),
    sleep: (time, options) => unawaited(() => scope.steps(abort).sleep(time, options)),
    waitFor: <T>(event: string, options?: WaitForOptions) =>
      unawaited(() => scope.steps(abort).waitFor(event, options) as Promise<T | undefined>),
    get wrapUp() {
      return wrapUpSignal(registry, entry)
    },
  }
  if (kind !== undefined) {
    context.setProgram = (fields: ProgramFacts) => registry.send({ type: 'task.note', entry, fields })
  }
  if (durability !== undefined) context.durability = durability
  if (scope.start.previous !== undefined) context.previous = scope.start.previous
  if (trace !== undefined) context.trace = trace
  const methods = reportMethods((field, value) => {
    if (scope.isCurrent) reportField(registry, entry, field, value)
  })
  return Object.assign(context, methods)
}
