/** Progress in words. */
import type { PageTask } from '../../wire.js'
import { count } from './format.js'

type Progress = NonNullable<PageTask['progress']>

/** `40 % · Reading`, or `12 · Reading` without a total. */
export function progressText({ progress, total, message }: Progress): string {
  const done = total === undefined ? count(progress) : `${Math.round(partOf(progress, total) * 100)} %`
  return message === undefined || message === '' ? done : `${done} · ${message}`
}

/** How much is done, from 0 to 1. */
export function partOf(progress: number, total: number): number {
  return total > 0 ? Math.min(1, Math.max(0, progress / total)) : 0
}
