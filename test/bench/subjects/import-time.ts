/** `node import-time.js <package | dependencies>` prints how long an import took, in ms: from a cold start, once for each process. */
const begun = performance.now()
if (process.argv[2] === 'package') await import('../../../src/index.js')
else await Promise.all([import('xstate'), import('rxjs'), import('zod')])
console.log(JSON.stringify(performance.now() - begun))
export {}
