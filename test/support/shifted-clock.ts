/** The environment variables of a Node.js process whose wall clock is wrong by `ms`. */
export const shiftedClock = (ms: number): Record<string, string> => ({
  NODE_OPTIONS: `--import=${new URL('programs/shifted-clock.mjs', import.meta.url).href}`,
  CLOCK_SHIFT_MS: String(ms),
})
