/** Limits of the fuzzed server, high enough not to hide other errors. */
export const fuzzOptions = {
  tasks: { maxQueueSize: 50 },
  limits: { requestsPerMinute: 1e9, framesPerMinute: 1e9 },
}
