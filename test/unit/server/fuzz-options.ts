/** Limits of a server that is fuzzed: high enough that the rest is looked at. */
export const fuzzOptions = {
  tasks: { maxQueueSize: 50 },
  limits: { requestsPerMinute: 1e9, framesPerMinute: 1e9 },
}
