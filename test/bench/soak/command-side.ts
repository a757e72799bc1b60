/**
 * The soak's load on command tasks: a server with in-process instances and a worker on a WebSocket, and clients that submit, watch, cancel
 * and disconnect. A task is tracked from its submission to its `complete`.
 */
import { WebSocket } from 'ws'
import { connectInstance, type ConnectedInstance } from 'agent-tasks/client'
import {
  localInstance,
  startTaskServer,
  type InstanceToolContext,
  type TaskCompleteMessage,
  type TaskProgressMessage,
  type TaskServer,
} from 'agent-tasks/server'
import type { Findings } from './findings.js'
import type { Random } from './random.js'
import { holdsWithin, pause, type Side } from './side.js'

const TOOLS = ['quick', 'quick', 'quick', 'slow', 'broken', 'hangs'] as const
const LOCAL = ['one', 'two', 'three'] as const
const WORKER = 'worker'
const GRACE_MS = 30
const MAX_OPEN = 300
const STEPS_AT_ONCE = 10

/** Enough tasks to fill what the server retains, which would otherwise count as growth. */
const FILLING = 18_000

interface TrackedTask {
  readonly instanceId: string
  readonly order: number
  started: number
  ended: number
}

export async function createCommandSide(random: Random, findings: Findings): Promise<Side> {
  const tasks = new Map<string, TrackedTask>()
  /** Calls in flight that have not been aborted, by instance. */
  const running = new Map<string, number>()
  let submitted = 0
  let worker: ConnectedInstance | undefined
  const sockets = new Set<WebSocket>()

  const call =
    (instanceId: string, tool: (typeof TOOLS)[number]) =>
    async (
      _input: unknown,
      { signal, progress, taskId = '' }: Pick<InstanceToolContext, 'signal' | 'progress' | 'taskId'>,
    ) => {
      const others = running.get(instanceId) ?? 0
      findings.check(others === 0, 'S3', () => `two commands run on ${instanceId}`)
      running.set(instanceId, others + 1)
      let hasEnded = false
      const end = (): void => {
        if (!hasEnded) running.set(instanceId, (running.get(instanceId) ?? 1) - 1)
        hasEnded = true
      }
      signal.addEventListener('abort', end, { once: true })
      try {
        findings.check(
          instanceId === WORKER || tasks.get(taskId)?.ended !== 1,
          'S4',
          () => `a command of ${taskId} started after its end`,
        )
        findings.count('commands')
        if (tool === 'slow') {
          await pause(random.below(8))
          progress(1)
        }
        if (tool === 'broken') throw new Error('it broke')
        if (tool === 'hangs') {
          await new Promise<void>((resolve) => {
            if (signal.aborted) resolve()
            else signal.addEventListener('abort', () => resolve(), { once: true })
          })
        }
        return 'done'
      } finally {
        end()
      }
    }

  const toolsOf = (instanceId: string) =>
    [...new Set(TOOLS)].map((name) => ({ name, description: name, execute: call(instanceId, name) }))

  const connectLocal = (server: TaskServer, id: string): void => {
    if (server.instances.get(id) !== undefined) return
    running.set(id, 0)
    server.instances.connect(
      localInstance({ id, tools: toolsOf(id), closeGraceMs: GRACE_MS, onError: () => undefined }),
    )
  }

  const server = await startTaskServer({
    port: 0,
    tasks: { wsPort: 0, commandTimeout: 40, abortGraceMs: GRACE_MS, drainMs: 200, maxQueueSize: 100 },
    limits: { requestsPerMinute: 1e9, framesPerMinute: 1e9 },
    env: {},
    writeLog: () => undefined,
  })
  for (const id of LOCAL) connectLocal(server, id)

  const lastOrder = new Map<string, number>()
  const onProgress = ({ taskId, status, instanceId }: TaskProgressMessage): void => {
    const task = tasks.get(taskId)
    if (task === undefined) return
    findings.check(task.ended === 0, 'S1', () => `${taskId} emitted progress after its complete`)
    if (status !== 'running' || task.started > 0) return
    task.started = 1
    const last = lastOrder.get(instanceId) ?? 0
    findings.check(task.order > last, 'S3', () => `${taskId} overtook another on ${instanceId}`)
    lastOrder.set(instanceId, task.order)
  }
  const onComplete = ({ taskId, status, summary, results }: TaskCompleteMessage): void => {
    findings.count(`command tasks ${status}`)
    const task = tasks.get(taskId)
    if (task === undefined) return
    task.ended += 1
    findings.check(task.ended === 1, 'S1', () => `${taskId} was completed twice`)
    const isClosed = results.every((result) => result.status !== 'pending' && result.status !== 'running')
    findings.check(isClosed, 'S2', () => `a command of ${taskId} is pending or running after its end`)
    findings.check(
      Number.isFinite(summary.duration) && summary.duration >= 0,
      'S2',
      () => `${taskId} took ${summary.duration}`,
    )
    const successes = results.filter((result) => result.status === 'success').length
    findings.check(summary.successfulCommands === successes, 'S2', () => `the count of ${taskId} does not match`)
    // Late events of the task would have been emitted by then.
    setTimeout(() => tasks.delete(taskId), 200).unref()
  }
  server.taskManager.on('progress', onProgress).on('complete', onComplete)
  server.taskManager.on('progress', () => {
    if (random.chance(0.01)) throw new Error('a listener that throws')
  })

  const submit = (): void => {
    if (openTasks() >= MAX_OPEN) return
    const instanceId = random.pick([...LOCAL, WORKER])
    const result = server.taskManager.submitTask({
      task_name: 'soak',
      instanceId,
      commands: Array.from({ length: 1 + random.below(4) }, () => ({
        tool_name: random.pick(TOOLS),
        args: { n: random.below(10) },
        ...(random.chance(0.2) && { timeout: 5 + random.below(20) }),
      })),
    })
    if ('error' in result) {
      findings.count(`submits refused: ${result.code}`)
      return
    }
    tasks.set(result.taskId, { instanceId, order: (submitted += 1), started: 0, ended: 0 })
    findings.count('command tasks submitted')
  }

  const openTasks = (): number => [...server.taskManager.laneDepths.values()].reduce((sum, depth) => sum + depth, 0)

  const openSocket = (): void => {
    if (sockets.size >= 20) {
      for (const socket of sockets) {
        if (random.chance(0.3)) socket.terminate()
      }
      return
    }
    const socket = new WebSocket(server.wsUrl)
    sockets.add(socket)
    const completed = new Set<string>()
    socket.on('open', () => {
      for (const instanceId of LOCAL) socket.send(JSON.stringify({ type: 'subscribe_instance', instanceId }))
      socket.send('this is not JSON')
    })
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as { type: string; taskId?: string }
      const { type, taskId = '' } = message
      if (type !== 'task_complete' && type !== 'task_progress') return
      findings.check(!completed.has(taskId), 'S7', () => `a socket got an event of ${taskId} after its complete`)
      if (type === 'task_complete') completed.add(taskId)
      findings.count('events on sockets')
    })
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  }

  let isConnecting = false
  const toggleWorker = async (): Promise<void> => {
    if (isConnecting) return
    isConnecting = true
    try {
      if (worker !== undefined) {
        const leaving = worker
        worker = undefined
        await leaving.close()
      } else {
        running.set(WORKER, 0)
        worker = await connectInstance(server.httpUrl, {
          id: WORKER,
          tools: toolsOf(WORKER),
          WebSocket: WebSocket,
        })
        findings.count('workers connected')
      }
    } catch (error) {
      // Its id is in use until the server has noticed the disconnect.
      findings.count(`workers refused: ${(error as { code?: string }).code ?? String(error)}`)
    } finally {
      isConnecting = false
    }
  }

  const act = (): void => {
    const what = random.below(100)
    if (what < 60) submit()
    else if (what < 75) {
      const [taskId] = [...tasks].find(([, { ended }]) => ended === 0 && random.chance(0.2)) ?? []
      if (taskId !== undefined) {
        findings.check(server.taskManager.cancelTask(taskId), 'S1', () => `${taskId} could not be cancelled`)
      }
    } else if (what < 77) {
      const id = random.pick(LOCAL)
      void server.instances.disconnect(id).then(() => connectLocal(server, id))
      findings.count('instances disconnected')
    } else if (what < 80) void toggleWorker()
    else if (what < 90) openSocket()
    else {
      void fetch(`${server.httpUrl}/tasks?limit=5`).then(
        (response) => response.text(),
        () => undefined,
      )
    }
  }

  await fill(server)

  return {
    step: () => {
      for (let n = 0; n < STEPS_AT_ONCE; n += 1) act()
    },
    finish: async () => {
      const isDrained = await holdsWithin(30_000, () => openTasks() === 0)
      findings.check(isDrained, 'S1', () => `${openTasks()} command tasks never ended`)
      for (const [taskId, { ended }] of tasks) findings.check(ended === 1, 'S1', () => `${taskId} ended ${ended} times`)
      await holdsWithin(5000, () => !isConnecting)
      await worker?.close()
      for (const socket of sockets) socket.terminate()
      await server.close({ drainMs: 200 })
    },
  }
}

/** Fills what the server retains of ended tasks. */
async function fill(server: TaskServer): Promise<void> {
  for (let left = FILLING; left > 0; left -= 90) {
    for (let n = 0; n < 90; n += 1) {
      server.taskManager.submitTask({ task_name: 'fill', instanceId: 'one', commands: [{ tool_name: 'quick' }] })
    }
    await holdsWithin(10_000, () => server.taskManager.laneDepths.size === 0)
  }
}
