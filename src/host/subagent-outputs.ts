/** Derives the type of a task's output from the type of its subagent. */
import type { OutputObject } from '../../machines/records.js'
import type { Subagent } from '../tools/subagents.js'

/** Subagents by name. */
export type Subagents = Readonly<Record<string, Subagent>>

/**
 * The type of the output of a subagent's tasks: a frozen plain copy of what its run returns. A run that returns `'text'` has the output
 * `{ final_message: 'text' }`. A run without a result has an empty object as output.
 */
export type OutputOf<Runnable> = Runnable extends
  | RunReturning<infer Result>
  | { readonly run: RunReturning<infer Result> }
  | { readonly run: { readonly run: RunReturning<infer Result> } }
  ? OutputObject extends Awaited<Result>
    ? OutputObject
    : OutputOfResult<Awaited<Result>>
  : OutputObject

/** A function that returns `Result`. */
export type RunReturning<Result> = (...args: never) => Result

/** The type of a task's output if its run returns `Result`. */
export type OutputOfResult<Result> = Result extends string
  ? { readonly final_message: string }
  : Result extends object
    ? PlainData<Result>
    : { readonly final_message?: undefined }

/** The type of a frozen copy of data, as task records contain it. Values that JSON cannot represent, such as functions, become text. */
export type PlainData<T> = unknown extends T
  ? unknown
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends bigint | symbol | ((...args: never) => unknown) | ArrayBufferView
      ? string
      : T extends ReadonlyMap<unknown, infer Value>
        ? Readonly<Record<string, PlainData<Value>>>
        : T extends ReadonlySet<infer Item>
          ? readonly PlainData<Item>[]
          : T extends { toJSON(...args: never): infer Json }
            ? PlainData<Json>
            : { readonly [Key in keyof T]: PlainData<T[Key]> }
