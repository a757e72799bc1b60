/** The tasks and messages of seed 004. */

export type SeedTaskStatus = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'
export type SeedCommandStatus = 'pending' | 'running' | 'success' | 'error' | 'skipped'

export interface SeedError {
  readonly code: string
  readonly message: string
  readonly commandId?: string
}

export interface SeedCommand {
  readonly id: string
  readonly tool_name: string
  readonly intention: string
  readonly args: Readonly<Record<string, unknown>>
  status: SeedCommandStatus
  startedAt?: number
  completedAt?: number
  result?: unknown
  error?: SeedError
}

export interface SeedTask {
  readonly id: string
  readonly instanceId: string
  readonly name: string
  readonly intention: string
  readonly commands: SeedCommand[]
  status: SeedTaskStatus
  currentCommandIndex: number
  readonly createdAt: number
  startedAt?: number
  completedAt?: number
  error?: SeedError
  readonly metadata?: Readonly<Record<string, unknown>>
}

export interface SeedSubmitMessage {
  readonly type: 'task_submit'
  readonly task_name: string
  readonly task_intention: string
  readonly instanceId?: string
  readonly commands: readonly Pick<SeedCommand, 'tool_name' | 'intention' | 'args'>[]
  readonly metadata?: Readonly<Record<string, unknown>>
}

export interface SeedProgressMessage {
  readonly type: 'task_progress'
  readonly taskId: string
  readonly commandId: string
  readonly commandIndex: number
  readonly totalCommands: number
  readonly status: SeedCommandStatus
  readonly timestamp: number
  readonly tool_name: string
  readonly intention: string
  readonly result?: unknown
  readonly error?: SeedError
}

export interface SeedCompleteMessage {
  readonly type: 'task_complete'
  readonly taskId: string
  readonly status: SeedTaskStatus
  readonly timestamp: number
  readonly summary: {
    readonly totalCommands: number
    readonly successfulCommands: number
    readonly failedCommandIndex?: number
    readonly duration: number
  }
  readonly error?: SeedError
  readonly results: readonly {
    readonly commandId: string
    readonly status: SeedCommandStatus
    readonly result?: unknown
    readonly error?: SeedError
  }[]
}

/** What a client may send. */
export type SeedRequest =
  | SeedSubmitMessage
  | { readonly type: 'task_list'; readonly instanceId?: string; readonly status?: SeedTaskStatus }
  | { readonly type: 'task_status' | 'task_cancel' | 'subscribe_task'; readonly taskId: string }
  | { readonly type: 'subscribe_instance'; readonly instanceId: string }
