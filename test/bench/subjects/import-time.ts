/** `node import-time.js <package | dependencies>` prints how long an import took, in ms: from a cold start, once for each process. */
// The built package, by its name. TypeScript is not told, for it looks for the sources of this build.
const name: string = 'agent-tasks'
const begun = performance.now()
if (process.argv[2] === 'package') await import(name)
else await Promise.all([import('xstate'), import('rxjs'), import('zod')])
console.log(JSON.stringify(performance.now() - begun))
export {}
