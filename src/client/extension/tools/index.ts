/** The tools of a browser, for `connectInstance`, with the names and arguments of Playwright's MCP server. */
import type { InstanceTool } from '../../../protocol/instance-tools.js'
import type { Tabs } from '../debuggee.js'
import { elementTools } from './element-tools.js'
import { logTools } from './log-tools.js'
import { pageTools } from './page-tools.js'
import { TIMES, type Times } from './perform.js'
import type { RefCounter } from './refs.js'
import { tabTools } from './tab-tools.js'
import { createPages } from './toolkit.js'

export interface BrowserToolsOptions {
  readonly times?: Partial<Times>
  /** Whether the keyboard is a Mac's, where `ControlOrMeta` is Meta. Default: false. */
  readonly isMac?: boolean
  /** Counts the refs, which name elements in snapshots. Default: the first ref is `e1`. */
  readonly refs?: RefCounter
}

export function createBrowserTools(tabs: Tabs, options: BrowserToolsOptions = {}): readonly InstanceTool[] {
  const { times, isMac = false, refs = { last: 0 } } = options
  const toolkit = { tabs, times: { ...TIMES, ...times }, isMac, refs, openCurrent: createPages(tabs, refs) }
  return [tabTools, pageTools, elementTools, logTools].flatMap((tools) => tools(toolkit))
}
