/**
 * Seed 000 taken at its word: a plain Map of mutable records and an EventEmitter. It is what P3 compares with, so it has every step
 * the seed names, in the seed's order, and nothing that would make it slower or faster than that.
 */
import { EventEmitter } from 'node:events'

export type SeedTaskStatus = 'running' | 'completed' | 'failed' | 'cancelled'

export interface SeedTaskInfo {
  readonly id: string
  readonly subagentName: string
  readonly goalPrompt: string
  status: SeedTaskStatus
  readonly launchedAt: number
  completedAt?: number
  notifiedAt?: number
  output?: object
  error?: string
  readonly abortController?: AbortController
}

export interface SeedTaskInput {
  readonly id: string
  readonly subagentName: string
  readonly goalPrompt: string
  readonly abortController?: AbortController
}

/** The history that an unlimited registry keeps. */
const UNLIMITED_HISTORY = 10

export class SeedAsyncTaskManager {
  readonly #tasks = new Map<string, SeedTaskInfo>()
  readonly #emitter = new EventEmitter()
  #max: number

  constructor(max = 5) {
    this.#max = max
  }

  setMaxAsyncTasks(max: number): void {
    this.#max = max
    this.#enforceHistoryLimit()
  }

  getMaxAsyncTasks(): number {
    return this.#max
  }

  canLaunchAsync(): { allowed: boolean; reason?: string } {
    if (this.#max === -1) return { allowed: true }
    let running = 0
    for (const task of this.#tasks.values()) if (task.status === 'running') running += 1
    return running >= this.#max
      ? { allowed: false, reason: `Max async tasks (${this.#max}) reached` }
      : { allowed: true }
  }

  registerTask(input: SeedTaskInput): SeedTaskInfo {
    const task: SeedTaskInfo = {
      id: input.id,
      subagentName: input.subagentName,
      goalPrompt: input.goalPrompt,
      status: 'running',
      launchedAt: Date.now(),
      ...(input.abortController && { abortController: input.abortController }),
    }
    this.#tasks.set(input.id, task)
    return task
  }

  completeTask(id: string, output: object): boolean {
    const task = this.#tasks.get(id)
    if (task?.status !== 'running') return false
    task.output = output
    this.#end(task, 'completed')
    return true
  }

  failTask(id: string, error: string): boolean {
    const task = this.#tasks.get(id)
    if (task?.status !== 'running') return false
    task.error = error
    this.#end(task, 'failed')
    return true
  }

  cancelTask(id: string): boolean {
    const task = this.#tasks.get(id)
    if (task?.status !== 'running') return false
    task.abortController?.abort()
    this.#end(task, 'cancelled')
    return true
  }

  getTask(id: string): SeedTaskInfo | undefined {
    return this.#tasks.get(id)
  }

  getTaskByPrefix(prefix: string): { task?: SeedTaskInfo; candidates?: SeedTaskInfo[] } {
    const candidates: SeedTaskInfo[] = []
    for (const task of this.#tasks.values()) if (task.id.startsWith(prefix)) candidates.push(task)
    const [task] = candidates
    if (task === undefined) return {}
    return candidates.length === 1 ? { task } : { candidates }
  }

  getAllTasks(): SeedTaskInfo[] {
    return Array.from(this.#tasks.values())
  }

  getRunningTasks(): SeedTaskInfo[] {
    return this.getAllTasks().filter((task) => task.status === 'running')
  }

  getPendingNotifications(): SeedTaskInfo[] {
    return this.getAllTasks().filter(
      (task) => (task.status === 'completed' || task.status === 'failed') && task.notifiedAt === undefined,
    )
  }

  markNotified(id: string): void {
    const task = this.#tasks.get(id)
    if (task !== undefined && task.notifiedAt === undefined) task.notifiedAt = Date.now()
  }

  onTaskCompleted(handler: (task: SeedTaskInfo) => void): () => void {
    return this.#on('completed', handler)
  }

  onTaskFailed(handler: (task: SeedTaskInfo) => void): () => void {
    return this.#on('failed', handler)
  }

  onTaskCancelled(handler: (task: SeedTaskInfo) => void): () => void {
    return this.#on('cancelled', handler)
  }

  #on(status: SeedTaskStatus, handler: (task: SeedTaskInfo) => void): () => void {
    this.#emitter.on(`task-${status}`, handler)
    return () => this.#emitter.off(`task-${status}`, handler)
  }

  #end(task: SeedTaskInfo, status: SeedTaskStatus): void {
    task.status = status
    task.completedAt = Date.now()
    this.#emitter.emit(`task-${status}`, task)
    this.#enforceHistoryLimit()
  }

  #enforceHistoryLimit(): void {
    const limit = this.#max === -1 ? UNLIMITED_HISTORY : this.#max * 2
    const ended = this.getAllTasks()
      .filter((task) => task.status !== 'running')
      .sort((a, b) => (a.completedAt ?? 0) - (b.completedAt ?? 0))
    while (ended.length > limit) {
      const oldest = ended[0]
      if (oldest?.notifiedAt === undefined) break
      this.#tasks.delete(oldest.id)
      ended.shift()
    }
  }
}
