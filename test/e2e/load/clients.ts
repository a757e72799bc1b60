/** The clients of a load run: what each does is drawn, and what each is told is kept for the judge. */
import { setTimeout as delay } from 'node:timers/promises'
import { createTaskClient } from '../../../src/client/index.js'
import { cuttableSockets } from '../../support/cuttable-sockets.js'
import { openSocket, type Received, type SocketClient } from '../../support/socket-client.js'
import type { Transcript, Watched } from './judge.js'
import type { Random } from './random.js'
import { toolNames } from './recorded-tools.js'
import type { TaskSubmission } from '../../../src/client/task-client.js'

/** What all clients of a run share. */
export interface Stage {
  readonly socketUrl: string
  readonly instanceIds: readonly string[]
  /** Tasks that anyone was told of by the answer to its submit. */
  readonly taskIds: string[]
  /** Whether tasks are still to be submitted. */
  isOpen(): boolean
  /** Takes one of them; false when there is none. */
  take(): boolean
  /** Gives it back: it was refused. */
  giveBack(): void
  readonly counts: { refused: number; cancels: number; disconnects: number; unanswered: number }
}

export interface Client {
  readonly transcripts: readonly Transcript[]
  readonly watches: readonly Watched[]
  /** Acts until nothing is left to submit. */
  act(): Promise<void>
  /** Resolves when it has been told everything that it will be; every task has ended by then. */
  finish(): Promise<void>
}

function drawTask(random: Random, stage: Stage): TaskSubmission {
  const instanceId = random.chance(0.9) ? random.pick(stage.instanceIds) : undefined
  const commands = Array.from({ length: 1 + random.below(3) }, () => {
    // Most commands are quick, or the run would be a long one.
    const tool_name = random.chance(0.75) ? 'quick' : random.pick(toolNames)!
    const timeout = tool_name === 'stuck' || tool_name === 'late' ? 30 : random.chance(0.1) ? 10 : undefined
    return { tool_name, intention: '', args: {}, ...(timeout !== undefined && { timeout }) }
  })
  return { task_name: 'load', commands, ...(instanceId !== undefined && { instanceId }) }
}

interface Connection {
  readonly client: SocketClient
  readonly transcript: Transcript
}

/** Speaks the protocol by itself, opens and drops sockets, and keeps every frame. */
export function createBareClient(name: string, random: Random, stage: Stage): Client {
  const transcripts: Transcript[] = []
  let present: Promise<Connection> | undefined

  const connect = (): Promise<Connection> =>
    (present ??= (async () => {
      const client = await openSocket(stage.socketUrl)
      const transcript: Transcript = { client: `${name}.${transcripts.length + 1}`, frames: [], isWhole: false }
      transcripts.push(transcript)
      client.socket.on('message', (data: Buffer) => transcript.frames.push(JSON.parse(data.toString()) as Received))
      await client.skipTo('welcome')
      return { client, transcript }
    })())

  /** What a socket that is gone does not answer is no fault. */
  async function ask(message: object): Promise<Received | undefined> {
    const { client } = await connect()
    return client.ask(message).catch(() => {
      stage.counts.unanswered += 1
      return undefined
    })
  }

  async function submit(): Promise<void> {
    if (!stage.take()) return
    const answer = await ask({ type: 'task_submit', ...drawTask(random, stage) })
    const taskId = answer?.['taskId']
    if (typeof taskId === 'string') stage.taskIds.push(taskId)
    else {
      stage.counts.refused += 1
      stage.giveBack()
    }
  }

  async function disconnect(): Promise<void> {
    const { client } = await connect()
    present = undefined
    stage.counts.disconnects += 1
    if (random.chance(0.5)) client.socket.terminate()
    else client.socket.close()
    await client.closed
  }

  return {
    transcripts,
    watches: [],
    act: async () => {
      const pending: Promise<unknown>[] = []
      while (stage.isOpen()) {
        const chance = random.below(100)
        const taskId = random.pick(stage.taskIds.slice(-200))
        const instanceId = random.pick(stage.instanceIds)
        if (chance < 60) pending.push(submit())
        else if (chance < 72 && taskId !== undefined) {
          stage.counts.cancels += 1
          pending.push(ask({ type: 'task_cancel', taskId }))
        } else if (chance < 82 && taskId !== undefined) pending.push(ask({ type: 'subscribe_task', taskId }))
        else if (chance < 85 && taskId !== undefined) pending.push(ask({ type: 'unsubscribe_task', taskId }))
        else if (chance < 90) pending.push(ask({ type: 'subscribe_instance', instanceId }))
        else if (chance < 93) pending.push(ask({ type: 'unsubscribe_instance', instanceId }))
        else if (chance < 96) await disconnect()
        if (random.chance(0.5)) await Promise.all(pending.splice(0))
        await delay(random.below(20))
        if (!stage.isOpen()) await Promise.all(pending)
      }
    },
    finish: async () => {
      if (present === undefined) return
      const { client, transcript } = await present
      // Its answer comes after everything that was told before.
      await client.ask({ type: 'task_list', limit: 1 })
      transcript.isWhole = true
      await client.close()
    },
  }
}

/** `createTaskClient`, whose connections are cut. */
export function createTypedClient(name: string, random: Random, stage: Stage): Client {
  const sockets = cuttableSockets()
  const client = createTaskClient({
    url: stage.socketUrl,
    WebSocket: sockets.WebSocket,
    reconnect: { initialMs: 5, maxMs: 50 },
  })
  const watches: Watched[] = []
  const pending: Promise<unknown>[] = []
  const answers: Promise<void>[] = []
  let cuts = 0

  async function watch(taskId: string, fromStart: boolean): Promise<void> {
    const watched: Watched = {
      client: name,
      taskId,
      messages: [],
      fromStart,
      cutsBefore: cuts,
      cutsAfter: cuts,
      error: undefined,
    }
    watches.push(watched)
    try {
      for await (const message of client.watch(taskId)) watched.messages.push(message)
    } catch (error) {
      watched.error = error
    }
    watched.cutsAfter = cuts
  }

  async function submit(): Promise<void> {
    if (!stage.take()) return
    const cutsBefore = cuts
    try {
      const { taskId } = await client.submit(drawTask(random, stage))
      stage.taskIds.push(taskId)
      pending.push(watch(taskId, cuts === cutsBefore))
    } catch {
      // A queue that is full, or a connection that was cut before the answer.
      stage.counts.refused += 1
      stage.giveBack()
    }
  }

  return {
    transcripts: [],
    watches,
    act: async () => {
      // The first connection of a client is not tried twice.
      await client.list({ limit: 1 })
      while (stage.isOpen()) {
        const chance = random.below(100)
        const taskId = random.pick(stage.taskIds.slice(-200))
        if (chance < 65) answers.push(submit())
        else if (chance < 78 && taskId !== undefined) {
          stage.counts.cancels += 1
          pending.push(client.cancel(taskId))
        } else if (chance < 90 && taskId !== undefined) pending.push(watch(taskId, false))
        else if (chance < 94) {
          cuts += 1
          stage.counts.disconnects += 1
          sockets.cut()
        } else if (chance < 97 && taskId !== undefined) pending.push(client.get(taskId))
        else pending.push(client.list({ limit: 5 }))
        await delay(random.below(20))
        // What is refused is submitted by whoever comes next.
        if (!stage.isOpen()) await Promise.all(answers)
      }
    },
    finish: async () => {
      // A watch that is still waiting then has missed its complete, and ends with an error.
      await Promise.race([Promise.all(pending), delay(20_000)])
      await client.close()
    },
  }
}
