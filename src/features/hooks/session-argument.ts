/** The argument that the plugin of opencode adds to each call of a tool: the id of the conversation. The server takes it out again. */
export const SESSION_ARGUMENT = 'agent_tasks_session'
