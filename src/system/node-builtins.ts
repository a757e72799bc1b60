/**
 * Access to Node: its process object and its modules. Modules are loaded when they are needed, because the core of this package could not be loaded
 * in a browser if it imported them.
 */
import type * as asyncHooks from 'node:async_hooks'
import type * as childProcess from 'node:child_process'
import type * as crypto from 'node:crypto'
import type * as fs from 'node:fs'
import type * as module from 'node:module'
import type * as net from 'node:net'
import type * as os from 'node:os'
import type * as path from 'node:path'
import type * as timers from 'node:timers/promises'

/** The process object of Node. A bundler may provide one with fewer fields. */
const nodeProcess = (globalThis as { readonly process?: Partial<NodeJS.Process> }).process

/** Whether this is Node or a compatible platform. */
export const isNode = typeof nodeProcess?.getBuiltinModule === 'function'

/** The name of the operating system in Node, such as `linux`; undefined outside of Node. */
export const nodePlatform = nodeProcess?.platform

/** Returns a module of Node, for code that only runs if `isNode` is true. */
export function nodeBuiltin<Id extends keyof NodeModules>(id: Id): NodeModules[Id] {
  return process.getBuiltinModule(id)
}

interface NodeModules {
  readonly 'node:async_hooks': Pick<typeof asyncHooks, 'AsyncLocalStorage' | 'AsyncResource'>
  readonly 'node:child_process': typeof childProcess
  readonly 'node:crypto': typeof crypto
  readonly 'node:fs': typeof fs
  readonly 'node:module': Pick<typeof module, 'createRequire'>
  readonly 'node:net': typeof net
  readonly 'node:os': typeof os
  readonly 'node:path': typeof path
  readonly 'node:timers/promises': typeof timers
}
