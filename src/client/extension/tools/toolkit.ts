/** The parts that the tools of a browser share. */
import { z } from 'zod'
import { instanceTool, type InstanceTool } from '../../../protocol/instance-tools.js'
import type { ToolContent } from '../../../protocol/tool-calls.js'
import type { Tabs } from '../debuggee.js'
import { openError } from './dialogs.js'
import { releaseHandles } from './frames.js'
import { openPage, type Page } from './page.js'
import type { RefCounter } from './refs.js'
import { perform, type Performance, type Times } from './perform.js'

export const ELEMENT = {
  element: z.string().max(1000).optional().describe('A description of the element in words, for people who watch'),
  target: z
    .string()
    .min(1)
    .max(2000)
    .describe('The ref of an element in the last snapshot, or a CSS selector that matches no other element'),
}

export interface PageCall extends Performance {
  readonly isMac: boolean
  /** Runs an action, and waits for what the action starts. Returns a report that begins with the action's text. */
  perform(action: () => Promise<string>): Promise<string>
}

export interface Toolkit {
  readonly tabs: Tabs
  readonly times: Times
  readonly isMac: boolean
  readonly refs: RefCounter
  openCurrent(signal: AbortSignal): Promise<Page>
}

interface PageTool<Input extends z.ZodType> {
  readonly name: string
  readonly description: string
  readonly inputSchema: Input
  /** Whether the tool works while the page shows a dialog. Default: false. */
  readonly isForDialogs?: boolean
  run(input: z.output<Input>, call: PageCall): Promise<string | readonly ToolContent[]>
}

export function pageTool<Input extends z.ZodType>(toolkit: Toolkit, tool: PageTool<Input>): InstanceTool {
  const { name, description, inputSchema, isForDialogs = false } = tool
  const { tabs, times, isMac } = toolkit
  return instanceTool({
    name,
    description,
    inputSchema,
    async execute(input, context) {
      const page = await toolkit.openCurrent(context.signal)
      const signal = AbortSignal.any([whileAttached(page, context.signal), page.crashed])
      if (!isForDialogs) signal.throwIfAborted()
      if (!isForDialogs) page.dialogs.assertNone()
      const call = { tabs, page, times, isMac, signal }
      try {
        const result = await tool.run(input, { ...call, perform: (action) => perform(call, action) })
        return typeof result === 'string' ? result : { content: result }
      } finally {
        releaseHandles(page)
      }
    },
  })
}

/**
 * Does work that a dialog would block.
 * @throws BrowserError `DIALOG_OPEN` when the page opens a dialog meanwhile
 */
export async function unlessDialog<T>({ dialogs }: Page, work: () => Promise<T>): Promise<T> {
  const done = await dialogs.race(work)
  if ('dialog' in done) throw openError(done.dialog)
  return done.value
}

/** A signal that also aborts when the tab is detached. */
export const whileAttached = ({ debuggee }: Page, signal: AbortSignal): AbortSignal =>
  AbortSignal.any([signal, debuggee.detached])

/** Returns a function that opens the page of the current tab. Each attached tab is prepared once. */
export function createPages(tabs: Tabs, counter: RefCounter): Toolkit['openCurrent'] {
  const options = { counter, refusal: tabs.refusal, flooding: new Set<number>() }
  const pages = new WeakMap<object, Promise<Page>>()
  return async (signal) => {
    const { id, debuggee } = await tabs.current(signal)
    let page = pages.get(debuggee)
    if (page === undefined) {
      page = openPage(id, debuggee, options, signal)
      pages.set(debuggee, page)
      page.catch(() => pages.delete(debuggee))
    }
    return page
  }
}
