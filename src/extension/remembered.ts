/** State that survives the service worker while the browser runs: `chrome.storage.session`. */
import { z } from 'zod'

const rememberedSchema = z.object({
  /** The groups whose tabs are under control. */
  groups: z.array(z.number()),
  /** The tabs that the extension, a page under control or the person has put under control. */
  given: z.array(z.number()),
  /** The tabs that the debugger was, or was about to be, attached to. */
  attached: z.array(z.number()),
  /** The current tab. */
  current: z.number().optional(),
  /** Why there is no current tab, until another one is chosen. */
  lost: z.object({ code: z.enum(['CONTROL_TAKEN', 'TAB_CLOSED']), message: z.string() }).optional(),
  /** The number of the last ref. */
  lastRef: z.number().default(0),
  /** Whether a command is running. */
  isWorking: z.boolean(),
})

export type Facts = Readonly<z.output<typeof rememberedSchema>>

export interface Remembered {
  readonly facts: Facts
  /** Resolves when it is stored. */
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
