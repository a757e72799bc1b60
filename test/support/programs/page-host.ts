/** A host with the page as a separate process: `page-host.ts <port> <token> <goal>` runs one task and prints the address of the page. */
import { startPageHost } from '../page-host.js'

const [port, token, goal] = process.argv.slice(2)
const host = await startPageHost({ page: { port: Number(port), token: token! } })
await host.launch('sleeper', goal!)
process.stdout.write(`${host.url}\n`)
