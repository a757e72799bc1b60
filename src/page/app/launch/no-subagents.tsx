/** Explains why the page cannot launch tasks, and what to do about it. */
import { usePage } from '../page-state.js'
import { EmptyState } from '../shell/empty-state.js'

const TITLE = 'This page cannot launch tasks'

export function NoSubagents() {
  const { hello } = usePage().view.value
  if (hello?.hints === 'mcp') {
    return (
      <EmptyState title={TITLE} command="npx --no-install agent-tasks mcp --init">
        This server has no subagents. Add them to agent-tasks.config.json, and start the server again. This command
        writes an example:
      </EmptyState>
    )
  }
  if (hello?.hasAsync !== true) {
    return (
      <EmptyState title={TITLE}>
        This page has no agent host, and therefore no subagents. You can submit commands in{' '}
        <a href="#/instances">Instances</a>.
      </EmptyState>
    )
  }
  return (
    <EmptyState
      title={TITLE}
      command={'const tasks = createAgentTasks({ subagents: { … } })\nawait createTaskPage({ tasks })'}
    >
      The page offers the subagents that your code passes to createAgentTasks. This host has none yet:
    </EmptyState>
  )
}
