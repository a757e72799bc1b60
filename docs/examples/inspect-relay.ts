// Starts Stately's relay at port 8080 and opens the viewer in the browser: `npx tsx inspect-relay.ts`
import { createInspectorServer } from '@statelyai/inspect/server'

createInspectorServer()
