/** Time in the browser. Only this module reads it. */

/** Calls `run` after a time in ms. Returns a function that stops it. */
export function after(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

/** Calls `run` periodically. Returns a function that stops it. */
export function every(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms)
  return () => clearInterval(timer)
}

/** Calls `run` before the next frame. Returns a function that stops it. */
export function onFrame(run: () => void): () => void {
  const frame = requestAnimationFrame(run)
  return () => cancelAnimationFrame(frame)
}

/** A monotonic time in ms. */
export function elapsed(): number {
  return performance.now()
}
