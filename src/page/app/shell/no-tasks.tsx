/** What the page shows when there are no tasks. */
import { usePage } from '../page-state.js'
import { EmptyState } from './empty-state.js'

export function NoTasks() {
  const { hello } = usePage().view.value
  if (hello?.hints === 'mcp') {
    return (
      <EmptyState
        title="No tasks yet"
        command="Write a haiku in the background with a subagent, and say when it is done."
      >
        A task appears here as soon as the agent of your MCP client starts one. Ask it, for example:
      </EmptyState>
    )
  }
  if (hello?.hasAsync === true) {
    return (
      <EmptyState
        title="No tasks yet"
        command={"await tasks.tools.task.execute({\n  subagent_name: '…',\n  goal_prompt: '…',\n  async: true,\n})"}
      >
        A task appears here as soon as an agent, your code, or you launch one
        {hello.canLaunch && (
          <>
            {' '}
            in the part <a href="#/launch">Launch</a>
          </>
        )}
        . In code, with the name of one of your subagents:
      </EmptyState>
    )
  }
  return (
    <EmptyState title="No tasks yet" command="npx agent-tasks submit --help">
      A task appears here once it is submitted: by a program, from the command line, or in the part{' '}
      <a href="#/instances">Instances</a>.
    </EmptyState>
  )
}
