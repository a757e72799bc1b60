/**
 * An agent launches background tasks that run real programs, is sometimes busy and sometimes idle, and receives every result once.
 * At the end the demo prints its ledger and the verdict of a recorder that logs every delivery; the exit code is 0 if each result was
 * delivered exactly once.
 *
 * Run it with `npm run demo`, or with `npm run demo -- --crash`: then a host with a store dies in the middle, and the next one goes on.
 */

// The library is imported below, so that the reader does not look at an empty screen while it loads.
if (process.argv.includes('--crash')) {
  console.log(`This demo shows what a store is for. A host launches background tasks, and kills itself (SIGKILL) in the middle of a turn.
A second host takes over. One task fails on purpose ("thinker"): its function ended with the first host, and may not run again.
A ledger at the end counts what the agent has read from both hosts. All of it takes about 12 seconds.
`)
  const { runCrashDemo } = await import('./demo/crash.js')
  process.exitCode = await runCrashDemo()
} else {
  console.log(`This demo shows an agent that launches 11 background tasks. They run real programs: git, npm and Node.
Results wait while the agent is busy, and come as messages when it is idle. One message is printed as the agent reads it.
Two tasks fail on purpose ("clumsy" has an error, "sleeper" misses its deadline), and the user cancels one ("stubborn").
The model refuses one message, which then comes again. A ledger at the end counts what the agent has read. All of it takes about 6 seconds.
`)
  const { runDeliveryDemo } = await import('./demo/deliveries.js')
  process.exitCode = await runDeliveryDemo()
}
