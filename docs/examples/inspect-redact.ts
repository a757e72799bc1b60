import { createInspector, redactByDefault } from 'agent-tasks/inspect'

const inspector = createInspector({
  redact: (key, value) => {
    if (key === 'goalPrompt') return String(value).slice(0, 40) // the start of each prompt
    if (key === 'owner') return '[owner]' // shown by default
    return redactByDefault(key, value)
  },
})
await inspector.close()
