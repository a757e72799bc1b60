/** `agent-tasks/page`: a page that shows tasks live and acts on them. */
export { createTaskPage, type TaskPage } from './create-task-page.js'
