import { createInspector, redactByDefault } from 'agent-tasks/inspect'

const inspector = createInspector({
  redact: (key, value) => {
    if (key === 'goalPrompt') return String(value).slice(0, 40) // the beginning of each prompt
    if (key === 'owner') return '[somebody]' // a field that the default shows
    return redactByDefault(key, value)
  },
})
await inspector.close()
