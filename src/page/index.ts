/** `agent-tasks/page`: a page that shows tasks live and acts on them. */
export { createTaskPage, type TaskPage, type TaskPageOptions } from './create-task-page.js'
