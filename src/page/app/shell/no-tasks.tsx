/** Said where there are no tasks. */
import { usePage } from '../page-state.js'
import { EmptyState } from './empty-state.js'

export function NoTasks() {
  const { hello } = usePage().view.value
  if (hello?.hasAsync === true) {
    return (
      <EmptyState
        title="No tasks yet"
        command={
          "await tasks.manager.launch({\n  owner: 'me',\n  subagentName: 'writer',\n  goalPrompt: 'Write a haiku',\n  run: async () => ({ final_message: 'Done' }),\n})"
        }
      >
        A task appears here as soon as an agent, or your code, launches one.
      </EmptyState>
    )
  }
  return (
    <EmptyState title="No tasks yet" command="npx agent-tasks submit --help">
      A task appears here as soon as it is submitted: by a program, from the command line, or in the part{' '}
      <a href="#/instances">Instances</a>.
    </EmptyState>
  )
}
