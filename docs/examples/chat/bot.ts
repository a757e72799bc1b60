/**
 * A bot for a chat service: it polls `GET /updates?after=<id>` for a list of `{ id, room, text }`, and posts what its agent says with `POST /posts` as
 * `{ key, room, text }`. It polls an update again until its turn is kept. The file `notes` has the last update that is done, and the last turn of each
 * room that was posted. A turn is posted again when the bot is killed before it has written that: the service drops the second post because of its `key`.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { disposeOnSignals } from 'agent-tasks'
import { z } from 'zod'
import type { Chat } from './chat.js'
import { checkMessage, toChatError } from './messages.js'
import type { SeenTurn } from './turns.js'

const updateSchema = z.object({ id: z.int(), room: z.string().regex(/^[\w-]{1,50}$/), text: z.string() })
const notesSchema = z.object({ after: z.int(), rooms: z.array(z.tuple([z.string(), z.int()])) })
const POLL_MS = 50

export async function runBot({ chat, api, notes }: { chat: Chat; api: string; notes: string }): Promise<void> {
  const ending = new AbortController()
  const { signal } = ending
  const stored: unknown = existsSync(notes) ? JSON.parse(readFileSync(notes, 'utf8')) : { after: 0, rooms: [] }
  let { after } = notesSchema.parse(stored)
  const rooms = new Map(notesSchema.parse(stored).rooms)
  /** Whether the updates that were taken are done. */
  const taken = new Map<number, boolean>()
  const note = (seen = after): void => {
    after = seen
    writeFileSync(`${notes}.new`, JSON.stringify({ after, rooms: [...rooms] }))
    renameSync(`${notes}.new`, notes)
  }
  /** Calls the service until it answers. */
  const call = async (path: string, body?: object): Promise<unknown> => {
    for (;;) {
      const init = body && { method: 'POST', body: JSON.stringify(body) }
      const response = await fetch(`${api}${path}`, { ...init, signal }).catch(() => undefined)
      if (response?.ok === true) return response.json()
      await pause(10 * POLL_MS, undefined, { signal })
    }
  }
  const postAll = async (room: string, turns: AsyncIterable<SeenTurn>): Promise<void> => {
    for await (const { seq, texts } of turns) {
      await call('/posts', { key: `${room} ${seq}`, room, text: texts.join('\n') })
      rooms.set(room, seq)
      note()
    }
  }
  const take = async ({ id, room, text }: z.infer<typeof updateSchema>): Promise<void> => {
    taken.set(id, false)
    try {
      const message = checkMessage({ id: String(id), text })
      if (!rooms.has(room)) postAll(room, chat.follow(room, 0, signal)).catch(fail)
      rooms.set(room, rooms.get(room) ?? 0)
      await chat.send(room, message)
    } catch (error) {
      const { status, message } = toChatError(error)
      if (status !== 400 && status !== 503) return void taken.delete(id) // A later poll brings it again.
      await call('/posts', { key: `refused ${id}`, room, text: message })
    }
    taken.set(id, true)
  }
  const fail = (error: unknown): void => {
    if (!signal.aborted) throw error
  }
  disposeOnSignals(async () => {
    ending.abort()
    await chat.dispose()
  })
  for (const [room, seq] of rooms) postAll(room, chat.follow(room, seq, signal)).catch(fail)
  console.log(`polls ${api}`)
  while (!signal.aborted) {
    const updates = z.array(updateSchema).parse((await call(`/updates?after=${after}`).catch(fail)) ?? [])
    for (const update of updates) if (!taken.has(update.id)) take(update).catch(fail)
    const open = updates.find(({ id }) => taken.get(id) !== true)
    const seen = open === undefined ? (updates.at(-1)?.id ?? after) : open.id - 1
    for (const id of taken.keys()) if (id <= seen) taken.delete(id)
    if (seen > after) note(seen)
    await pause(POLL_MS)
  }
}
