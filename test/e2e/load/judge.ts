/**
 * Judges what subscribers were told against what the task manager told. It knows the protocol and none of the server's code: a frame is
 * what came over the wire, and the truth is the list of messages in the order in which the manager emitted them.
 *
 * S1  one `complete` a task, its last message.
 * S2  a `complete` agrees with the messages before it.
 * S3  the commands of an instance do not interleave, and its tasks start in the order of their submission.
 * S7  a subscriber is told each message at most once, in order, without a gap, from the first (after a submit) or from its snapshot on;
 *     `complete` is the last.
 */
import type { Task, TaskCompleteMessage, TaskProgressMessage } from '../../../src/protocol/command-tasks.js'

export type TaskMessage = TaskProgressMessage | TaskCompleteMessage

export interface Truth {
  readonly messages: TaskMessage[]
  /** The ids of all tasks that were taken, in the order of submission. */
  readonly submitted: () => readonly string[]
}

export type Frame = { readonly type: string } & Readonly<Record<string, unknown>>

/** Everything that one connection received, in order. */
export interface Transcript {
  readonly client: string
  readonly frames: Frame[]
  /** It was open when everything was over and had been told. */
  isWhole: boolean
}

/** What one `watch` of a typed client gave, across connections. */
export interface Watched {
  readonly client: string
  readonly taskId: string
  readonly messages: TaskMessage[]
  /** It began in the step that read the answer to its submit. */
  readonly fromStart: boolean
  /** How often its client's connections had been cut when it began, and when it ended: no more, and nothing may be missing. */
  readonly cutsBefore: number
  cutsAfter: number
  error: unknown
}

export interface Verdict {
  readonly faults: string[]
  readonly events: number
  readonly told: number
  readonly byStatus: Readonly<Record<string, number>>
}

interface Known {
  /** The key of every message, in order; its index is its place in the truth. */
  readonly places: ReadonlyMap<string, number>
  readonly ofTask: ReadonlyMap<string, readonly number[]>
  readonly ofInstance: ReadonlyMap<string, readonly number[]>
}

export function judge(truth: Truth, transcripts: readonly Transcript[], watches: readonly Watched[]): Verdict {
  const faults: string[] = []
  const fault = (text: string): void => void faults.push(text)
  const known = indexOf(truth.messages, fault)
  const byStatus = judgeTasks(truth, known, fault)
  judgeLanes(truth, fault)
  let told = 0
  for (const transcript of transcripts) told += judgeTranscript(transcript, truth, known, fault)
  for (const watched of watches) {
    told += watched.messages.length
    judgeWatch(watched, known, fault)
  }
  return { faults, events: truth.messages.length, told, byStatus }
}

/** What tells a message from all others: a command starts and ends once, and the tools count their reports. */
function keyOf(message: TaskMessage): string {
  if (message.type === 'task_complete') return `${message.taskId} complete`
  const { taskId, commandId, status, progress } = message
  return `${taskId} ${commandId} ${status} ${progress ?? '-'}`
}

function indexOf(messages: readonly TaskMessage[], fault: (text: string) => void): Known {
  const places = new Map<string, number>()
  const ofTask = new Map<string, number[]>()
  const ofInstance = new Map<string, number[]>()
  for (const [place, message] of messages.entries()) {
    const key = keyOf(message)
    if (places.has(key)) fault(`S1: the manager told ${key} twice`)
    places.set(key, place)
    for (const [index, id] of [[ofTask, message.taskId] as const, [ofInstance, message.instanceId] as const]) {
      const list = index.get(id)
      if (list === undefined) index.set(id, [place])
      else list.push(place)
    }
  }
  return { places, ofTask, ofInstance }
}

function judgeTasks({ messages, submitted }: Truth, known: Known, fault: (text: string) => void): Verdict['byStatus'] {
  const byStatus: Record<string, number> = { completed: 0, failed: 0, cancelled: 0 }
  const all = submitted()
  for (const taskId of known.ofTask.keys()) {
    if (!all.includes(taskId)) fault(`S1: ${taskId} was told of, and never taken`)
  }
  for (const taskId of all) {
    const story = (known.ofTask.get(taskId) ?? []).map((place) => messages[place]!)
    const completes = story.filter((message) => message.type === 'task_complete')
    if (completes.length !== 1) fault(`S1: ${taskId} has ${completes.length} completes`)
    const complete = completes[0]
    if (complete === undefined) continue
    if (story.at(-1) !== complete) fault(`S1: something followed the complete of ${taskId}`)
    byStatus[complete.status] = (byStatus[complete.status] ?? 0) + 1
    for (const problem of problemsOf(story, complete)) fault(`S2: ${taskId}: ${problem}`)
  }
  return byStatus
}

/** Goes through a task's messages as the protocol allows them. */
function problemsOf(story: readonly TaskMessage[], complete: TaskCompleteMessage): string[] {
  const problems: string[] = []
  const { summary, results, status } = complete
  // What the types promise of an error is what is judged here.
  const error = complete.error as { readonly code: string } | undefined
  let index = -1
  let isRunning = false
  let failedAt: number | undefined
  let lastAt = 0
  for (const message of story) {
    if (message.timestamp < lastAt) problems.push('time went back')
    lastAt = message.timestamp
    if (message.type === 'task_complete') continue
    const { commandIndex, status: step, progress } = message
    if (failedAt !== undefined) problems.push('something followed a failed command')
    if (step === 'running' && progress === undefined) {
      if (isRunning || commandIndex !== index + 1) problems.push(`command ${commandIndex} started out of turn`)
      index = commandIndex
      isRunning = true
    } else if (!isRunning || commandIndex !== index) {
      problems.push(`command ${commandIndex} said ${step} while it did not run`)
    }
    if (step === 'success' || step === 'error') isRunning = false
    if (step === 'error') failedAt = commandIndex
    if (step === 'pending' || step === 'skipped') problems.push(`a step said ${step}`)
  }
  const successes = results.filter((result) => result.status === 'success').length
  if (results.some((result) => result.status === 'pending' || result.status === 'running')) {
    problems.push('not all has ended')
  }
  if (results.length !== summary.totalCommands) problems.push('results are missing')
  if (successes !== summary.successfulCommands) problems.push('successfulCommands does not match')
  if (summary.failedCommandIndex !== failedAt) problems.push('failedCommandIndex is another')
  if (!Number.isFinite(summary.duration) || summary.duration < 0) problems.push(`the duration is ${summary.duration}`)
  if (index === -1 && summary.duration !== 0) problems.push('it never started, and took time')
  if (status === 'completed' && (successes !== results.length || error !== undefined)) {
    problems.push('completed, not all succeeded')
  }
  if (status === 'cancelled' && error?.code !== 'CANCELLED') {
    problems.push(`cancelled, and the code is ${error?.code ?? 'none'}`)
  }
  if (status === 'failed' && failedAt === undefined && error?.code !== 'INSTANCE_DISCONNECTED') {
    problems.push(`failed without a failed command: ${error?.code ?? 'none'}`)
  }
  return problems
}

function judgeLanes({ messages, submitted }: Truth, fault: (text: string) => void): void {
  const order = new Map(submitted().map((id, at) => [id, at]))
  const running = new Map<string, TaskProgressMessage>()
  const lastStarted = new Map<string, number>()
  for (const message of messages) {
    const { instanceId, taskId } = message
    const present = running.get(instanceId)
    if (message.type === 'task_progress' && message.status === 'running' && message.progress === undefined) {
      if (present !== undefined) fault(`S3: ${instanceId} began ${keyOf(message)} in the middle of ${keyOf(present)}`)
      running.set(instanceId, message)
      const at = order.get(taskId) ?? -1
      if (message.commandIndex === 0) {
        if (at < (lastStarted.get(instanceId) ?? -1)) fault(`S3: ${instanceId} took ${taskId} out of turn`)
        lastStarted.set(instanceId, at)
      }
    } else if (present?.taskId === taskId && (message.type === 'task_complete' || message.status !== 'running')) {
      running.delete(instanceId)
    }
  }
}

/** One subscription as the frames tell of it. */
interface Span {
  readonly of: readonly number[]
  readonly name: string
  /** How many of its messages had been told when it began; undefined when that cannot be known. */
  readonly before: { readonly least: number; readonly most: number } | undefined
  readonly got: Set<number>
  isOpen: boolean
}

/** @returns how many messages of tasks the connection received */
function judgeTranscript(
  transcript: Transcript,
  { messages }: Truth,
  known: Known,
  fault: (text: string) => void,
): number {
  const { client, frames, isWhole } = transcript
  const spans: Span[] = []
  const received = new Set<number>()
  let latest = -1
  let told = 0
  const open = (name: string, of: readonly number[] = [], before: Span['before']): void => {
    spans.push({ of, name, before, got: new Set(), isOpen: true })
  }
  const close = (name: string): void => {
    for (const span of spans) if (span.name === name) span.isOpen = false
  }
  for (const [at, frame] of frames.entries()) {
    if (frame.type === 'task_submit_response' && typeof frame['taskId'] === 'string') {
      open(frame['taskId'], known.ofTask.get(frame['taskId']), { least: 0, most: 0 })
    } else if (frame.type === 'subscribe_ack' && typeof frame['instanceId'] === 'string') {
      open(frame['instanceId'], known.ofInstance.get(frame['instanceId']), undefined)
    } else if (frame.type === 'subscribe_ack' && isTask(frame['task'])) {
      const { task } = frame
      // A second subscription to what it is subscribed to already changes nothing.
      if (!spans.some(({ name, isOpen }) => isOpen && name === task.id)) {
        const of = known.ofTask.get(task.id) ?? []
        open(
          task.id,
          of,
          placeOfSnapshot(
            task,
            of.map((place) => messages[place]!),
          ),
        )
      }
    } else if (frame.type === 'unsubscribe_ack') close(String(frame['taskId'] ?? frame['instanceId']))
    if (frame.type !== 'task_progress' && frame.type !== 'task_complete') continue
    told += 1
    const message = frame as unknown as TaskMessage
    const key = keyOf(message)
    const place = known.places.get(key)
    if (place === undefined) {
      fault(`S7: ${client} was told ${key}, which never happened`)
      continue
    }
    const previous = frames[at - 1]
    const isAnswer =
      message.type === 'task_complete' &&
      previous?.type === 'subscribe_ack' &&
      isTask(previous['task']) &&
      previous['task'].id === message.taskId &&
      previous['task'].completedAt !== undefined
    if (!isAnswer) {
      if (received.has(place)) fault(`S7: ${client} was told ${key} twice`)
      if (place < latest) fault(`S7: ${client} was told ${key} out of order`)
      latest = place
    }
    received.add(place)
    // The answer to a late subscription is no event of the instance.
    const matching = spans.filter(
      ({ isOpen, name }) => isOpen && (name === message.taskId || (!isAnswer && name === message.instanceId)),
    )
    if (matching.length === 0) fault(`S7: ${client} was told ${key}, and did not ask for it`)
    for (const { got } of matching) got.add(place)
    if (message.type === 'task_complete') close(message.taskId)
  }
  for (const span of spans) judgeSpan(span, client, isWhole, messages, fault)
  return told
}

/** What was received must be one piece of what there was. */
function judgeSpan(
  { of, name, before, got, isOpen }: Span,
  client: string,
  isWhole: boolean,
  messages: readonly TaskMessage[],
  fault: (text: string) => void,
): void {
  const at = of.flatMap((place, index) => (got.has(place) ? [index] : []))
  const [first, last] = [at[0], at.at(-1)]
  const mustReachEnd = isWhole && isOpen && of.length > 0
  const missing = (what: string): void => fault(`S7: ${client} misses ${what} of ${name}`)
  if (first === undefined || last === undefined) {
    if (mustReachEnd && before !== undefined && before.most < of.length) missing('everything')
    return
  }
  for (let index = first; index <= last; index += 1) {
    const place = of[index]!
    if (!got.has(place)) missing(keyOf(messages[place]!))
  }
  if (before !== undefined && first > before.most) missing(`what came before ${keyOf(messages[of[first]!]!)}`)
  if (before !== undefined && first < before.least) {
    fault(`S7: ${client} was told of ${name} what its snapshot had told`)
  }
  if (mustReachEnd && last < of.length - 1) missing(`what came after ${keyOf(messages[of[last]!]!)}`)
}

/** How much of a task's story its snapshot tells: every start and end of a command. Reports in between are in no snapshot. */
function placeOfSnapshot(task: Task, story: readonly TaskMessage[]): { least: number; most: number } {
  if (task.completedAt !== undefined) return { least: story.length - 1, most: story.length - 1 }
  let steps = 0
  for (const { status } of task.commands) {
    if (status === 'running') steps += 1
    if (status === 'success' || status === 'error') steps += 2
  }
  const isStep = (message: TaskMessage): boolean => message.type === 'task_complete' || message.progress === undefined
  let least = 0
  for (let seen = 0; seen < steps && least < story.length; least += 1) if (isStep(story[least]!)) seen += 1
  let most = least
  while (most < story.length && !isStep(story[most]!)) most += 1
  return { least, most }
}

function judgeWatch(watched: Watched, { places, ofTask }: Known, fault: (text: string) => void): void {
  const { client, taskId, messages, error, fromStart, cutsBefore, cutsAfter } = watched
  const who = `${client} watching ${taskId}`
  if (error !== undefined) fault(`S7: ${who} ended with ${(error as Error).message}`)
  let latest = -1
  for (const message of messages) {
    const place = places.get(keyOf(message))
    if (place === undefined || message.taskId !== taskId) fault(`S7: ${who} was told ${keyOf(message)}`)
    else if (place <= latest) fault(`S7: ${who} was told ${keyOf(message)} twice or out of order`)
    latest = Math.max(latest, place ?? -1)
  }
  const completes = messages.filter(({ type }) => type === 'task_complete').length
  if (completes !== 1 || messages.at(-1)?.type !== 'task_complete') fault(`S7: ${who} got ${completes} completes`)
  const whole = ofTask.get(taskId)?.length ?? 0
  if (cutsBefore !== cutsAfter || messages.length === whole) return
  const first = ofTask.get(taskId)?.findIndex((place) => place === places.get(keyOf(messages[0]!))) ?? 0
  if (fromStart || messages.length !== whole - first) {
    fault(`S7: ${who} was told ${messages.length} of ${whole} messages`)
  }
}

function isTask(value: unknown): value is Task {
  return typeof value === 'object' && value !== null && 'commands' in value
}
