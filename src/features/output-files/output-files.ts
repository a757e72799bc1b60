/**
 * Files with the whole output of tasks (option `outputFiles`). A file is removed with the record of its task. With a store, the files outlive the
 * process like the records. Names begin with a mark of the store, so that several managers can share a folder.
 */
import { z } from 'zod'
import type { AsyncTaskInfo } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { InvalidInputError } from '../../errors.js'
import { lazily } from '../../protocol/lazily.js'
import {
  aName,
  integerFrom,
  required,
  withDefault,
  withDefaults,
  type OptionTypes,
} from '../../protocol/option-checks.js'
import type { StoredJson } from '../../store/store.js'
import { nodeBuiltin } from '../../system/node-builtins.js'
import type { Feature, FeatureStates } from '../../async-tasks/feature.js'
import { takeRows } from '../../async-tasks/recovery/state-rows.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import type { Run } from '../../engine/engine.js'
import type { ResolvedRunner } from '../../engine/runner.js'
import { folderName } from '../output/run-files.js'
import { OutputFile } from './output-file.js'

/** Where the whole output of tasks is written. See docs/jobs.md#keep-the-whole-output. */
export interface OutputFileOptions {
  /** The folder of the files. If it does not exist, it is made for the user of this process only. */
  readonly folder: string
  /** How much output of a task is written, in bytes. A last line says how much is left out. Default 64 MiB. */
  readonly maxBytes?: number
}

export const outputFileTypes = {
  folder: required(aName),
  maxBytes: withDefault(integerFrom(1), 64 * 1024 * 1024),
} satisfies OptionTypes<OutputFileOptions>

const FEATURE = 'output-files'

const markSchema = lazily(() => z.object({ mark: z.string().regex(/^[0-9a-f]{16}$/) }))

export class OutputFiles implements Feature {
  readonly states: FeatureStates = {
    feature: FEATURE,
    prepare: (rows) => this.#takeMark(rows),
    restore: () => this.#removeUnknown(),
  }
  readonly #registry: TaskRegistry
  #folder: string | undefined
  #maxBytes = 0
  #mark = ''
  /** The files of active tasks. */
  readonly #files = new Map<TaskEntry, OutputFile>()
  readonly #reported = new WeakSet<OutputFile>()

  constructor(registry: TaskRegistry) {
    this.#registry = registry
  }

  /**
   * Must be called before the tasks of the store are restored.
   * @throws INVALID_INPUT if the folder cannot be made
   */
  connect(options: OutputFileOptions): void {
    const { folder, maxBytes } = withDefaults(options, outputFileTypes)
    const path = nodeBuiltin('node:path').resolve(folder)
    try {
      nodeBuiltin('node:fs').mkdirSync(path, { recursive: true, mode: 0o700 })
    } catch (error) {
      const expected = `a folder that exists or can be made (${(error as Error).message})`
      throw new InvalidInputError('options.outputFiles.folder', folder, expected)
    }
    this.#folder = path
    this.#maxBytes = maxBytes
    this.#mark = nodeBuiltin('node:crypto').randomBytes(8).toString('hex')
  }

  /** A resumed run emits the output of its program from the beginning, so its file begins anew. */
  runStarted(entry: TaskEntry, _run: Run, _runner: ResolvedRunner, _graceMs: number, isResumed: boolean): void {
    if (isResumed) this.#fileOf(entry, isResumed)
  }

  reported(entry: TaskEntry, text = ''): void {
    const file = text === '' ? undefined : this.#fileOf(entry)
    if (file === undefined) return
    file.append(text)
    if (file.isOpen && entry.record.outputFile !== file.path) {
      this.#registry.send({ type: 'task.note', entry, fields: { outputFile: file.path } })
    }
    this.#report(entry, file)
  }

  repeated(entry: TaskEntry): void {
    this.#files.get(entry)?.close()
  }

  /** Closes the file in the transition, so that it is complete when others learn of the end. */
  ending(entry: TaskEntry): void {
    this.#files.get(entry)?.close()
  }

  ended(entry: TaskEntry): void {
    const file = this.#files.get(entry)
    if (file !== undefined) this.#report(entry, file)
    this.#files.delete(entry)
  }

  pruned({ record }: TaskEntry): void {
    // After the loss of the store, the files belong to its next owner.
    if (this.#registry.persistence?.isLost !== true) this.#remove(record)
  }

  disposed(): void {
    for (const file of this.#files.values()) file.close()
    this.#files.clear()
    if (this.#registry.persistence === undefined) {
      for (const { record } of this.#registry.history.entries()) this.#remove(record)
    }
    this.#folder = undefined
  }

  #fileOf(entry: TaskEntry, restarts = false): OutputFile | undefined {
    const present = this.#files.get(entry)
    const path = present === undefined ? this.#pathOf(entry.record) : undefined
    if (path === undefined) return present
    const file = new OutputFile(path, this.#maxBytes, restarts)
    this.#files.set(entry, file)
    return file
  }

  /** Returns undefined without the option, and after disposal. */
  #pathOf(record: AsyncTaskInfo): string | undefined {
    if (this.#folder === undefined) return undefined
    return nodeBuiltin('node:path').join(this.#folder, `${this.#prefix}${folderName(record)}.log`)
  }

  get #prefix(): string {
    return `output-${this.#mark}-`
  }

  /** Removes the file of a task. A path in a restored record may be any path, so only the path that this manager has made is removed. */
  #remove(record: AsyncTaskInfo): void {
    const { outputFile } = record
    if (outputFile === undefined || outputFile !== this.#pathOf(record)) return
    remove(outputFile)
  }

  #takeMark(rows: ReadonlyMap<string, StoredJson>): void {
    if (this.#folder === undefined) return
    takeRows(this.#registry, { feature: FEATURE, schema: markSchema(), rows }, ({ mark }) => (this.#mark = mark))
    this.#registry.persistence?.keepState(FEATURE, 'mark', { mark: this.#mark })
  }

  /** Removes files that this store has no task for. */
  #removeUnknown(): void {
    const folder = this.#folder
    if (folder === undefined) return
    const known = new Set(Array.from(this.#registry.history.entries(), ({ record }) => this.#pathOf(record)))
    try {
      for (const name of nodeBuiltin('node:fs').readdirSync(folder)) {
        const path = nodeBuiltin('node:path').join(folder, name)
        if (name.startsWith(this.#prefix) && !known.has(path)) remove(path)
      }
    } catch (error) {
      this.#registry.report(error, { source: 'output' })
    }
  }

  #report({ record }: TaskEntry, file: OutputFile): void {
    if (file.error === undefined || this.#reported.has(file)) return
    this.#reported.add(file)
    this.#registry.report(file.error, { source: 'output', taskId: record.id })
  }
}

/** Removes a file, unless that fails: a file that is left takes space but does no harm. */
function remove(path: string): void {
  try {
    nodeBuiltin('node:fs').rmSync(path, { force: true })
  } catch {
    return
  }
}

export const outputFiles = (registry: TaskRegistry): OutputFiles => new OutputFiles(registry)
