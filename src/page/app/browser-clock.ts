/** Time and timers of the browser. The rest of the page uses only these functions for them. */

/** Calls `run` after `ms` milliseconds. Returns a function that stops the timer. */
export function after(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

/** Calls `run` every `ms` milliseconds. Returns a function that stops the timer. */
export function every(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms)
  return () => clearInterval(timer)
}

/** Calls `run` before the browser draws its next frame. Returns a function that prevents this. */
export function onFrame(run: () => void): () => void {
  const frame = requestAnimationFrame(run)
  return () => cancelAnimationFrame(frame)
}

/** Returns a time in ms that never goes back. */
export function elapsed(): number {
  return performance.now()
}
