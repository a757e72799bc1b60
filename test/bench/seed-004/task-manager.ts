/**
 * Seed 004's task manager, step by step: a queue for each instance, one `setImmediate` for each submission, a timer for each command,
 * mutable records and an EventEmitter. P6 and P7 compare with it, so it has every step of the seed and nothing that makes it slower.
 *
 * The seed sweeps every hour what ended more than an hour ago. Here the caller calls `cleanupTasks`.
 */
import { EventEmitter } from 'node:events'
import type { SeedInstanceManager } from './instance-manager.js'
import type {
  SeedCommand,
  SeedCompleteMessage,
  SeedProgressMessage,
  SeedSubmitMessage,
  SeedTask,
  SeedTaskStatus,
} from './types.js'

interface SeedTaskQueue {
  readonly instanceId: string
  tasks: SeedTask[]
  isProcessing: boolean
}

type SeedSubmitResult = { readonly taskId: string; readonly queuePosition: number } | { readonly error: string }

const COMMAND_TIMEOUT_MS = 60_000
const MAX_QUEUE_SIZE = 100
const HOUR_MS = 3_600_000

export class SeedTaskManager extends EventEmitter {
  readonly #instances: SeedInstanceManager
  readonly #queues = new Map<string, SeedTaskQueue>()
  readonly #tasks = new Map<string, SeedTask>()
  #taskIdCounter = 0

  constructor(instances: SeedInstanceManager) {
    super()
    this.#instances = instances
    instances.onDisconnect((instanceId) => this.handleInstanceDisconnect(instanceId))
  }

  submitTask(message: SeedSubmitMessage): SeedSubmitResult {
    const instanceId = message.instanceId ?? this.#instances.firstConnected()
    if (instanceId === undefined) return { error: 'No browser instance connected' }
    const instance = this.#instances.get(instanceId)
    if (instance === undefined) return { error: `Instance not found: ${instanceId}` }
    if (!instance.isConnected) return { error: `Instance not connected: ${instanceId}` }
    if (message.commands.length === 0) return { error: 'Task must have at least one command' }
    const queue = this.#queueOf(instanceId)
    if (queue.tasks.length >= MAX_QUEUE_SIZE) return { error: `Queue full (max ${MAX_QUEUE_SIZE} tasks)` }

    const now = Date.now()
    this.#taskIdCounter += 1
    const task: SeedTask = {
      id: `task_${now}_${this.#taskIdCounter.toString(36)}`,
      instanceId,
      name: message.task_name,
      intention: message.task_intention,
      commands: message.commands.map(({ tool_name, intention, args }, index): SeedCommand => ({
        id: `cmd_${index + 1}`,
        tool_name,
        intention,
        args,
        status: 'pending',
      })),
      status: 'queued',
      currentCommandIndex: 0,
      createdAt: now,
      ...(message.metadata && { metadata: message.metadata }),
    }
    this.#tasks.set(task.id, task)
    queue.tasks.push(task)
    // Later, so that the submitter can subscribe first.
    setImmediate(() => void this.#processQueue(instanceId))
    return { taskId: task.id, queuePosition: queue.tasks.length }
  }

  cancelTask(taskId: string): boolean {
    const task = this.#tasks.get(taskId)
    if (task === undefined || hasEnded(task)) return false
    task.status = 'cancelled'
    task.completedAt = Date.now()
    task.error = { code: 'CANCELLED', message: 'Task cancelled' }
    this.#markRemainingCommandsSkipped(task, task.currentCommandIndex)
    this.#emitTaskComplete(task)
    return true
  }

  getTask(taskId: string): SeedTask | undefined {
    return this.#tasks.get(taskId)
  }

  listTasks(instanceId?: string, status?: SeedTaskStatus): SeedTask[] {
    return Array.from(this.#tasks.values()).filter(
      (task) =>
        (instanceId === undefined || task.instanceId === instanceId) &&
        (status === undefined || task.status === status),
    )
  }

  handleInstanceDisconnect(instanceId: string): void {
    const queue = this.#queues.get(instanceId)
    if (queue === undefined) return
    for (const task of queue.tasks) {
      if (hasEnded(task)) continue
      task.status = 'failed'
      task.error = { code: 'INSTANCE_DISCONNECTED', message: 'Browser instance disconnected' }
      task.completedAt = Date.now()
      this.#emitTaskComplete(task)
    }
    queue.tasks = []
    queue.isProcessing = false
  }

  cleanupTasks(maxAge = HOUR_MS): number {
    const cutoff = Date.now() - maxAge
    let cleaned = 0
    for (const [taskId, task] of this.#tasks) {
      if (hasEnded(task) && task.completedAt !== undefined && task.completedAt < cutoff) {
        this.#tasks.delete(taskId)
        cleaned += 1
      }
    }
    return cleaned
  }

  #queueOf(instanceId: string): SeedTaskQueue {
    let queue = this.#queues.get(instanceId)
    if (queue === undefined) {
      queue = { instanceId, tasks: [], isProcessing: false }
      this.#queues.set(instanceId, queue)
    }
    return queue
  }

  async #processQueue(instanceId: string): Promise<void> {
    const queue = this.#queues.get(instanceId)
    if (queue === undefined || queue.isProcessing) return
    queue.isProcessing = true
    for (let task = queue.tasks[0]; task !== undefined; task = queue.tasks[0]) {
      if (task.status !== 'cancelled') await this.#executeTask(task)
      queue.tasks.shift()
    }
    queue.isProcessing = false
  }

  async #executeTask(task: SeedTask): Promise<void> {
    task.status = 'running'
    task.startedAt = Date.now()
    for (const [index, command] of task.commands.entries()) {
      task.currentCommandIndex = index
      await this.#executeCommand(task, command, index)
      if (hasEnded(task)) return
      if (command.error !== undefined) {
        task.status = 'failed'
        task.error = { ...command.error, commandId: command.id }
        this.#markRemainingCommandsSkipped(task, index + 1)
        break
      }
    }
    if (task.error === undefined) task.status = 'completed'
    task.completedAt = Date.now()
    this.#emitTaskComplete(task)
  }

  async #executeCommand(task: SeedTask, command: SeedCommand, index: number): Promise<void> {
    command.status = 'running'
    command.startedAt = Date.now()
    this.#emitProgress(task, command, index)
    try {
      const request = {
        jsonrpc: '2.0',
        id: `${task.id}_${command.id}`,
        method: 'tools/call',
        params: { name: command.tool_name, arguments: { ...command.args, instanceId: task.instanceId } },
      } as const
      const answer = await this.#executeWithTimeout(this.#instances.handleMCPRequest(request), COMMAND_TIMEOUT_MS)
      if (answer.error !== undefined) throw new Error(answer.error.message)
      if (answer.result?.isError === true) throw new Error(JSON.stringify(answer.result.content))
      command.status = 'success'
      command.result = answer.result
    } catch (error) {
      command.status = 'error'
      command.error = { code: 'EXECUTION_ERROR', message: error instanceof Error ? error.message : String(error) }
    }
    command.completedAt = Date.now()
    this.#emitProgress(task, command, index)
  }

  #executeWithTimeout<T>(promise: Promise<T>, timeout: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`Command timeout after ${timeout}ms`)), timeout)
      promise.then(
        (result) => {
          clearTimeout(timer)
          resolve(result)
        },
        (error: unknown) => {
          clearTimeout(timer)
          reject(error instanceof Error ? error : new Error(String(error)))
        },
      )
    })
  }

  #markRemainingCommandsSkipped(task: SeedTask, fromIndex: number): void {
    for (const command of task.commands.slice(fromIndex)) command.status = 'skipped'
  }

  #emitProgress(task: SeedTask, command: SeedCommand, index: number): void {
    const message: SeedProgressMessage = {
      type: 'task_progress',
      taskId: task.id,
      commandId: command.id,
      commandIndex: index,
      totalCommands: task.commands.length,
      status: command.status,
      timestamp: Date.now(),
      tool_name: command.tool_name,
      intention: command.intention,
      ...(command.result !== undefined && { result: command.result }),
      ...(command.error !== undefined && { error: command.error }),
    }
    this.emit('progress', message)
  }

  #emitTaskComplete(task: SeedTask): void {
    const failed = task.commands.findIndex(({ status }) => status === 'error')
    const message: SeedCompleteMessage = {
      type: 'task_complete',
      taskId: task.id,
      status: task.status,
      timestamp: Date.now(),
      summary: {
        totalCommands: task.commands.length,
        successfulCommands: task.commands.filter(({ status }) => status === 'success').length,
        ...(failed !== -1 && { failedCommandIndex: failed }),
        duration: (task.completedAt ?? 0) - (task.startedAt ?? 0),
      },
      ...(task.error && { error: task.error }),
      results: task.commands.map(({ id, status, result, error }) => ({
        commandId: id,
        status,
        ...(result !== undefined && { result }),
        ...(error !== undefined && { error }),
      })),
    }
    this.emit('complete', message)
  }
}

const hasEnded = ({ status }: SeedTask): boolean =>
  status === 'completed' || status === 'failed' || status === 'cancelled'
