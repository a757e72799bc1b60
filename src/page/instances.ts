/** The instances of a TaskManager and their tools, as the page shows them. */
import type { TaskManager } from '../command-tasks/task-manager.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { InstanceEntry } from '../command-tasks/instances/instance-manager.js'
import { jsonBytes } from '../data/json-size.js'
import { toPlainData } from '../data/plain-data.js'
import { commandKey } from './command-entry.js'
import { beginningOf, rowText } from './texts.js'
import type { PageInstance } from './wire.js'

/** The maximum size of the tools of one instance, and of all instances together, in bytes of JSON. Tools beyond this size are left out. */
const MAX_TOOLS_BYTES = 1024 * 1024
const MAX_ALL_BYTES = 4 * 1024 * 1024

/** The maximum length of a tool's description, in UTF-16 units. */
const MAX_DESCRIPTION = 2000

type Tools = PageInstance['tools']

export class Instances {
  readonly #taskManager: TaskManager
  readonly #onChange: () => void
  readonly #tools = new Map<number, Tools>()
  readonly #stop: readonly (() => void)[]

  /** @param onChange called when an instance has connected, disconnected, paused, resumed or listed its tools */
  constructor(taskManager: TaskManager, onChange: () => void) {
    this.#taskManager = taskManager
    this.#onChange = onChange
    const { instances } = taskManager
    taskManager.on('pause', onChange)
    this.#stop = [
      instances.onConnect((id) => this.#ask(instances.get(id))),
      instances.onDisconnect(() => this.#drop()),
      () => void taskManager.off('pause', onChange),
    ]
    this.refresh()
  }

  stop(): void {
    for (const stop of this.#stop) stop()
    this.#tools.clear()
  }

  /** Requests the tools of each instance again, because they may have changed. */
  refresh(): void {
    for (const entry of this.#taskManager.instances.list()) this.#ask(entry)
  }

  list(): PageInstance[] {
    const lanes = new Map(this.#taskManager.lanes.map((lane) => [lane.instanceId, lane]))
    let room = MAX_ALL_BYTES
    return this.#taskManager.instances.list().map(({ id, kind, state, connectedAt, serial }): PageInstance => {
      const lane = lanes.get(id)
      const known = this.#tools.get(serial) ?? []
      const bytes = jsonBytes(known, room)
      const tools = bytes <= room ? known : []
      if (bytes <= room) room -= bytes
      return {
        id,
        type: kind,
        state,
        tools,
        ...omitUndefined({ connectedAt, pausedSince: this.#taskManager.pausedInstances.get(id) }),
        queued: (lane?.size ?? 0) - (lane?.runningId === undefined ? 0 : 1),
        ...(lane?.runningId !== undefined && { running: commandKey(lane.runningId) }),
      }
    })
  }

  #ask(entry: InstanceEntry | undefined): void {
    this.#onChange()
    if (entry?.isConnected !== true) return
    const { instance } = entry
    const listed = (async () => instance.listTools())()
    listed.then(
      (listed) => {
        if (this.#taskManager.instances.get(entry.id)?.serial !== entry.serial) return
        this.#tools.set(entry.serial, toTools(listed))
        this.#onChange()
      },
      // The instance has not answered, so the page keeps the tools that it knows.
      () => undefined,
    )
  }

  #drop(): void {
    const live = new Set(this.#taskManager.instances.list().map(({ serial }) => serial))
    for (const serial of this.#tools.keys()) if (!live.has(serial)) this.#tools.delete(serial)
    this.#onChange()
  }
}

function toTools(listed: unknown): Tools {
  const plain = toPlainData(listed)
  if (!Array.isArray(plain)) return []
  let room = MAX_TOOLS_BYTES
  const tools: { name: string; description?: string; inputSchema: Readonly<Record<string, unknown>> }[] = []
  for (const one of plain as readonly unknown[]) {
    const { name, description, inputSchema } = Object(one) as Readonly<Record<string, unknown>>
    if (typeof name !== 'string') continue
    const schema = typeof inputSchema === 'object' && inputSchema !== null ? inputSchema : { type: 'object' }
    const tool = {
      name: rowText(name),
      ...(typeof description === 'string' && { description: beginningOf(description, MAX_DESCRIPTION) }),
      inputSchema: schema as Readonly<Record<string, unknown>>,
    }
    room -= jsonBytes(tool, room)
    if (room < 0) break
    tools.push(tool)
  }
  return tools
}
