/** `npm run config-schema`: writes the JSON Schema of `agent-tasks.config.json` from its zod schema. A test checks that the file is up to date. */
import { writeFileSync } from 'node:fs'
import { agentConfigJsonSchema } from '../src/protocol/agent-config.js'

const file = new URL('../agent-tasks.config.schema.json', import.meta.url)
writeFileSync(file, `${JSON.stringify(agentConfigJsonSchema(), null, 2)}\n`)
