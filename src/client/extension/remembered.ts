/** The state of the extension in `chrome.storage.session`. It survives a restart of the service worker, and is gone when the browser exits. */
import { z } from 'zod'

const rememberedSchema = z.object({
  /** The ids of the tab groups that the extension created. */
  groups: z.array(z.number()),
  /** The ids of the tabs that the extension, a page under control or the person has put under control. */
  given: z.array(z.number()),
  /** The ids of the tabs to which the debugger is attached, or is being attached. */
  attached: z.array(z.number()),
  /** The id of the tab in which commands act. */
  current: z.number().optional(),
  /** Why the tab in which commands acted is gone. Removed when another tab becomes the current one. */
  lost: z.object({ code: z.enum(['CONTROL_TAKEN', 'TAB_CLOSED']), message: z.string() }).optional(),
  /** The number of the last ref, which names an element in a snapshot. */
  lastRef: z.number().default(0),
  isWorking: z.boolean(),
})

export type Facts = Readonly<z.output<typeof rememberedSchema>>

export interface Remembered {
  readonly facts: Facts
  /** Changes some facts at once. Resolves when they are stored. */
  readonly change: (changed: Partial<Facts>) => Promise<void>
}

const KEY = 'remembered'
const NOTHING: Facts = { groups: [], given: [], attached: [], lastRef: 0, isWorking: false }

/** The part of `chrome.storage.session` that is used here. */
export interface SessionArea {
  get(key: string): Promise<Record<string, unknown>>
  set(items: Record<string, unknown>): Promise<void>
}

/** Reads what the previous run of the service worker stored. */
export async function recall(area: SessionArea): Promise<Remembered> {
  const { [KEY]: stored } = await area.get(KEY)
  let facts: Facts = rememberedSchema.catch(NOTHING).parse(stored)
  return {
    get facts() {
      return facts
    },
    change: (changed) => {
      facts = { ...facts, ...changed }
      return area.set({ [KEY]: facts })
    },
  }
}
