/** Time in the browser: the one place that asks for it. */

/** Calls back after a time in ms; returns what stops it. */
export function after(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

/** Calls back again and again; returns what stops it. */
export function every(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms)
  return () => clearInterval(timer)
}

/** Runs before the next frame; returns what stops it. */
export function onFrame(run: () => void): () => void {
  const frame = requestAnimationFrame(run)
  return () => cancelAnimationFrame(frame)
}

/** Ms that only ever grow. */
export function elapsed(): number {
  return performance.now()
}
